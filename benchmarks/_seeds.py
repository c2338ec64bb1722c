"""The seeds of every benchmark, which the pages state beside its results: of drawn rows or splits, and of models."""

import shlex

FROM_200 = "draws from seed 200 on; models of seed 0"
ALL_0 = "seed 0 throughout"
RECORDED_0 = "recorded data; splits and models of seed 0"

SEEDS = {
    "accuracy/activities.py": "recorded data; models of seeds 0 to 2",
    "accuracy/agreement.py": "rows of seed 200; models of seed 0",
    "accuracy/atoms.py": FROM_200,
    "accuracy/change_points.py": FROM_200,
    "accuracy/change_points_widths.py": FROM_200,
    "accuracy/claims.py": "none: it sums up other results",
    "accuracy/communities.py": FROM_200,
    "accuracy/comparing.py": "levels from seed 7; power from 60,000 on; pairs and trees from 200; alarms from 20,000",
    "accuracy/components.py": "draws from seed 200 on, and the test's permutations of the same seed",
    "accuracy/conditional.py": FROM_200,
    "accuracy/crowds.py": "recorded data; the made-up crowd of seed 200",
    "accuracy/cytometry.py": "recorded data; models of seeds 0 to 2, peers of seed 0",
    "accuracy/dependence.py": "draws from seed 0 on, and models of the same seed",
    "accuracy/dependence_choice.py": "cells drawn by the seed of the command; models of seed 0",
    "accuracy/diagnoses.py": FROM_200,
    "accuracy/digits.py": "draws from seed 200 on; models of seeds 0 to 2",
    "accuracy/features.py": "draws from seed 200 on, and features of the same seed",
    "accuracy/few_rows.py": RECORDED_0,
    "accuracy/forecast_bands.py": FROM_200,
    "accuracy/hmm.py": "draws from seed 0 on, judged on seed 1,000 + i; models of the same seed",
    "accuracy/ica.py": "draws from seed 5,000 on; models of seed 0",
    "accuracy/intervals.py": FROM_200,
    "accuracy/kernel_machines.py": FROM_200,
    "accuracy/kernel_pca.py": "eigenfunctions from seed 0 on; memory on draws from 253 on",
    "accuracy/latent_classes.py": "recorded data; models of seeds 0 to 2; made-up rows of seed 200",
    "accuracy/lowrank.py": "draws from seed 0 on",
    "accuracy/million.py": ALL_0,
    "accuracy/mixed.py": "recorded data; splits of seed 1, models of seed 0",
    "accuracy/mixtools.py": ALL_0,
    "accuracy/mixtures.py": FROM_200,
    "accuracy/near_gaussian.py": "splits and draws from seed 200 on; models of seed 0",
    "accuracy/parametric.py": "draws from seed 300 on; models of seed 0",
    "accuracy/populations.py": FROM_200,
    "accuracy/propagation.py": FROM_200,
    "accuracy/series.py": RECORDED_0,
    "accuracy/several_columns.py": "draws and models from seed 200 on",
    "accuracy/shift.py": FROM_200,
    "accuracy/solvers.py": FROM_200,
    "accuracy/streams_classify.py": RECORDED_0,
    "accuracy/theory.py": "draws from seeds 200, 300, 400 and 500 on",
    "accuracy/topics.py": "recorded data, splits of seed 0; made-up texts from seed 200 on",
    "accuracy/torus.py": "recorded data, splits of seed 1; models of seed 0",
    "accuracy/uci_table1.py": "recorded data; folds of seeds 0 and 1; models of seed 0",
    "answers.py": "seeds 0 and 1",
    "hostile.py": "the seed of the command",
    "properties.py": "the seed of the command, by default 7000",
    "mutants.py": "the seed of the command",
    "speed/chains.py": ALL_0,
    "speed/chunks.py": "the number of a chunk",
    "speed/comparing.py": ALL_0,
    "speed/files.py": "rows of seed 200; models of seed 0",
    "speed/gpu.py": ALL_0,
    "speed/imagenet_shape.py": ALL_0,
    "speed/kernel_pca.py": ALL_0,
    "speed/mixture.py": ALL_0,
    "speed/report.py": "rows of seed 200; models of seed 0",
    "speed/scale.py": ALL_0,
    "speed/trees.py": ALL_0,
}


def seeds(made_by: str) -> str:
    """The seeds of the script that a command runs; not known of one that is not listed."""
    return SEEDS.get(shlex.split(made_by)[1].removeprefix("benchmarks/"), "not known")
