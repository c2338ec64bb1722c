"""Hostile input from a seed: tables that nobody would fit and files that something damaged, and what came of each.

``python -m tests.fuzz fits --seed 0 --count 10000 --minutes 10`` fits every estimator of the catalogue, and
``python -m tests.fuzz files`` damages files and reads them. A finding is printed with the command that runs it again.
"""
