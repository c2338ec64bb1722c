"""Literal, slow transcripts of the papers' Gram-matrix algorithms, for the fast path to be tested against."""

import numpy as np

from latentviews.whitening import symmetric, symmetric_tensor


def factor(gram, tol=1e-13):
    """R and its pseudo-inverse with gram = Rᵀ R: the papers' Cholesky, for matrices that are nearly singular."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > tol * values[-1]
    root = np.sqrt(values[keep])
    return (vectors[:, keep] * root).T, vectors[:, keep] / root


def leading(matrix, rank):
    """The algebraically largest eigenpairs of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:rank], vectors[:, ::-1][:, :rank]


def algorithm_1(kernel, views, rank, solver, rng, orders=((0, 1), (1, 0))):
    """Algorithm 1 of Song et al. (2014); ``orders`` are the pairs of views in Φ and Ψ, the paper's by default.

    Returns π̂ and a function that evaluates the components.
    """
    m = len(views[0])
    points = np.concatenate([views[s] for s, _ in orders])
    partners = np.concatenate([views[t] for _, t in orders])
    K, L = kernel.gram(points, points), kernel.gram(partners, partners)
    R, R_inverse = factor(K)
    squares, eigenvectors = leading(R @ L @ R.T / len(points) ** 2, rank)
    S = np.sqrt(squares)
    beta = R_inverse @ eigenvectors
    xi = [(beta / np.sqrt(S)).T @ kernel.gram(points, view) for view in views]
    T = np.zeros((rank,) * 3)
    for i in range(m):
        a, b, c = xi[0][:, i], xi[1][:, i], xi[2][:, i]
        for x, y, z in [(a, b, c), (c, a, b), (b, c, a)]:
            T += np.multiply.outer(np.multiply.outer(x, y), z) / (3 * m)
    found = solver.decompose(symmetric_tensor(T), rng)
    A = (beta * np.sqrt(S)) @ found.vectors * found.values
    return found.values**-2, lambda x: kernel.gram(x, points) @ A


def appendix_9(kernel, views, rank, solver, rng, alpha, beta):
    """Appendix 9 of Song et al. (2014) with 1/m once in equation 13 and Pair_3 symmetrised.

    A = (Φ alpha)ᵀ and B = (Ψ beta)ᵀ are the appendix's free matrices. Returns π̂ and the components of view 3.
    """
    x1, x2, x3 = views
    m = len(x1)
    K_nk, L_nk = kernel.gram(x1, x1) @ alpha, kernel.gram(x2, x2) @ beta
    G = kernel.gram(x3, x3)
    H = K_nk @ np.linalg.inv(L_nk.T @ K_nk) @ L_nk.T
    R, R_inverse = factor(G)
    S, eigenvectors = leading(R @ symmetric(H) @ R.T / m, rank)
    coefficients = R_inverse @ eigenvectors
    whitener = (coefficients / np.sqrt(S)).T
    first = whitener @ G @ L_nk @ np.linalg.inv(K_nk.T @ L_nk) @ K_nk.T
    second = whitener @ G @ K_nk @ np.linalg.inv(L_nk.T @ K_nk) @ L_nk.T
    third = whitener @ G
    T = np.einsum("in,jn,ln->ijl", first, second, third) / m
    found = solver.decompose(symmetric_tensor(T), rng)
    A = (coefficients * np.sqrt(S)) @ found.vectors * found.values
    return found.values**-2, lambda x: kernel.gram(x, x3) @ A


def doubly_stochastic_pca(rows, features, start, rates):
    """The talk's Train and Evaluate, a row and a random feature vector a step.

    ``features(j)`` gives φ_j of one row; ``start`` are the coefficients of block 0; α_i, (D, r), are returned.
    """
    alpha = [start]

    def evaluate(x):
        y = np.zeros(start.shape[1])
        for j in range(len(alpha)):
            y = y + features(j)(x) @ alpha[j]
        return y

    for i, (x, rate) in enumerate(zip(rows, rates, strict=True), start=1):
        y = evaluate(x)
        for j in range(i):
            alpha[j] = alpha[j] @ (np.eye(len(y)) - rate * np.outer(y, y))
        alpha.append(rate * np.outer(features(i)(x), y))
    return alpha
