"""Literal, slow transcripts of the papers' Gram-matrix algorithms, for the fast path to be tested against."""

import numpy as np

from latentviews.core.whitening import symmetric, symmetric_tensor


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


def hsu_kakade_zhang(joint, k, sequence):
    """The probability of a sequence of codes by observable operators (Hsu, Kakade & Zhang 2009, Algorithm 1).

    ``joint[a, b, c]`` is the probability of three consecutive codes.
    """
    p1, p21 = joint.sum(axis=(1, 2)), joint.sum(axis=2).T
    u = np.linalg.svd(p21)[0][:, :k]
    b1, b_inf = u.T @ p1, np.linalg.pinv(p21.T @ u) @ p1
    state = b1
    for x in sequence:
        p3x1 = joint[:, x, :].T
        state = (u.T @ p3x1) @ np.linalg.pinv(u.T @ p21) @ state
    return float(b_inf @ state)


def hierarchical_svd(table, tree, rank):
    """A table projected along the edges of a tree, one after the other, by full singular value decompositions.

    "caterpillar" is the tensor-train SVD: only the sets of the first columns are cut.
    """
    sides = [list(range(j)) for j in range(1, table.ndim)] if tree == "caterpillar" else list(_below(_binary(tree)))
    for side in sides:
        rest = [j for j in range(table.ndim) if j not in side]
        moved = table.transpose(side + rest)
        matrix = moved.reshape(int(np.prod([table.shape[j] for j in side])), -1)
        left = np.linalg.svd(matrix, full_matrices=False)[0][:, :rank]
        table = (left @ left.T @ matrix).reshape(moved.shape).transpose(np.argsort(side + rest))
    return table


def _binary(part):
    if not isinstance(part, tuple):
        return part
    parts = [_binary(child) for child in part]
    while len(parts) > 2:
        parts = [(parts[0], parts[1]), *parts[2:]]
    return tuple(parts)


def _below(part, top=True):
    """The columns below every vertex but the root, children before parents."""
    if isinstance(part, tuple):
        for child in part:
            yield from _below(child, False)
    if not top:
        yield _columns(part)


def _columns(part):
    return [j for child in part for j in _columns(child)] if isinstance(part, tuple) else [part]


def latent_tree_table(tree, rank, shape, rng):
    """The joint table of discrete columns at the leaves of a latent tree with ``rank`` states a hidden variable."""

    def given(part):
        """P(columns below | state of the parent), and the columns."""
        step = rng.dirichlet(np.full(shape[part] if not isinstance(part, tuple) else rank, 0.7), size=rank)
        if not isinstance(part, tuple):
            return step, [part]
        inner, columns = vertex(part)
        return np.tensordot(step, inner, axes=1), columns

    def vertex(part):
        """P(columns below | own state)."""
        table, columns = np.ones(rank), []
        for child in part:
            below, more = given(child)
            below = below.reshape(rank, *(1,) * len(columns), *below.shape[1:])
            table = table.reshape(*table.shape, *(1,) * len(more)) * below
            columns = columns + more
        return table, columns

    table, columns = vertex(tree)
    return np.tensordot(rng.dirichlet(np.full(rank, 5.0)), table, axes=1).transpose(np.argsort(columns))


def song_dai_train(kernels, rows, points, rank):
    """Song & Dai (2013), Algorithm 3 on Gram matrices, with its slips corrected: values at points, and the mass."""
    n, d = rows.shape
    grams = [kernel.gram(rows[:, [j]], rows[:, [j]]) for j, kernel in enumerate(kernels)]
    thetas, gammas = [], [np.ones((n, 1))]
    for j in range(d - 1):
        inside = grams[j] * (gammas[-1] @ gammas[-1].T)
        outside = np.prod(grams[j + 1 :], axis=0)
        values, vectors = np.linalg.eigh(inside)
        keep = values > 1e-12 * values[-1]
        root = (vectors[:, keep] * np.sqrt(values[keep])).T
        leading = np.linalg.eigh(root @ outside @ root.T / n**2)[1][:, ::-1][:, :rank]
        thetas.append(np.linalg.pinv(root, rcond=1e-10) @ leading)
        gammas.append(inside @ thetas[-1])

    def evaluate(columns):
        v = np.ones((len(columns[0]), 1))
        for j in range(d - 1):
            v = (columns[j] * (v @ gammas[j].T)) @ thetas[j]
        return np.sum(columns[-1] * (v @ gammas[-1].T), axis=1) / n

    at = [kernel.gram(points[:, [j]], rows[:, [j]]) for j, kernel in enumerate(kernels)]
    return evaluate(at), float(evaluate([np.ones((1, n))] * d)[0])


def doubly_stochastic_pca(rows, features, start, rates):
    """The talk's Train and Evaluate, one row and one random feature vector per step.

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


def anandkumar_discrete(codes, k, solver, rng):
    """Three discrete views given the class by explicit moment tables (Anandkumar et al. 2012/2014, section 3.3).

    x̃₁ = E[x₃ x₂ᵀ] E[x₁ x₂ᵀ]† x₁ and x̃₂ = E[x₃ x₁ᵀ] E[x₂ x₁ᵀ]† x₂ with pseudo-inverses of rank k, then
    M₂ = E[x̃₁ x̃₂ᵀ] and M₃ = E[x̃₁ ⊗ x̃₂ ⊗ x₃]. Returns π̂ and the distributions of the third view in columns.
    """
    sizes = codes.max(axis=0) + 1
    joint = np.zeros(sizes)
    for a, b, c in codes:
        joint[a, b, c] += 1 / len(codes)
    p12, p13, p23 = joint.sum(axis=2), joint.sum(axis=1), joint.sum(axis=0)
    u, s, vt = np.linalg.svd(p12)
    inverse = vt[:k].T @ np.diag(1 / s[:k]) @ u[:, :k].T  # of rank k
    first, second = p23.T @ inverse, p13.T @ inverse.T
    m2 = symmetric(first @ p12 @ second.T)
    m3 = symmetric_tensor(np.einsum("abc,ia,jb->ijc", joint, first, second))
    values, vectors = leading(m2, k)
    whitener, back = vectors / np.sqrt(values), vectors * np.sqrt(values)
    found = solver.decompose(np.einsum("ijl,ia,jb,lc->abc", m3, whitener, whitener, whitener), rng)
    order = np.argsort(found.values)
    components = back @ (found.vectors * found.values)
    return found.values[order] ** -2, components[:, order]


def latent_class_em_step(codes, row_weights, weights, items):
    """A step of EM for latent classes, row by row and item by item, and the log-likelihood before it; -1 is missing."""
    k = len(weights)
    new_weights, counts = np.zeros(k), [np.zeros_like(item) for item in items]
    log_likelihood = 0.0
    for row, count in zip(codes, row_weights, strict=True):
        joint = np.array(weights)
        for answer, item in zip(row, items, strict=True):
            if answer >= 0:
                joint = joint * item[answer]
        log_likelihood += count * np.log(joint.sum())
        posterior = count * joint / joint.sum()
        new_weights += posterior
        for answer, table in zip(row, counts, strict=True):
            if answer >= 0:
                table[answer] += posterior
    return new_weights / new_weights.sum(), [table / table.sum(axis=0) for table in counts], log_likelihood
