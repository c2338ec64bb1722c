"""
Depth from a pair of images, by kernel belief propagation
=========================================================

Two cameras beside each other see near things shifted more than far ones. Matching small cells of the two images gives
the shift where there is texture, and nonsense where there is none. `KernelBeliefPropagation` learns from a part of the
image whose depth is known how shifts of neighbouring cells go together, and what a match is worth, and tells the shifts
of the rest (Song, Gretton, Bickson, Low & Guestrin 2011, who took depth from single photographs).

The pair is the motorcycle of Scharstein et al. (2014), which the wheel of scikit-image 0.17.2 holds
(``pip download --no-deps scikit-image==0.17.2``); the environment variable ``LATENTVIEWS_STEREO`` names that file.
Without it the example makes up a pair, rectangles at several depths, and runs anywhere.
"""

# %%
# Two images
# ----------
# Grey values between 0 and 1, and the true shift of every pixel of the left image.

import io
import os
import warnings
import zipfile

import numpy as np
from matplotlib import pyplot as plt

from latentviews import Gaussian, KernelBeliefPropagation

CELL, FARTHEST = 10, 70  # pixels of a cell, and shifts that are tried


def motorcycle(path):
    """The pair in a wheel of scikit-image."""
    with zipfile.ZipFile(path) as wheel:
        parts = {name: io.BytesIO(wheel.read(f"skimage/data/motorcycle_{name}")) for name in ("left.png", "right.png")}
        shift = np.load(io.BytesIO(wheel.read("skimage/data/motorcycle_disp.npz")))["arr_0"]
    left, right = (plt.imread(part)[..., :3].mean(axis=-1) for part in parts.values())
    return left, right, np.where(np.isfinite(shift), shift, np.nan)


def made_up(height=250, width=740):
    """Rectangles from far to near, half of them plain, each further to the left in the right image."""
    rng = np.random.default_rng(0)
    left, right, shift = np.zeros((3, height, width))
    for depth in [10, *np.sort(rng.integers(15, 60, size=40))]:
        top, side = (0, 0) if depth == 10 else (rng.integers(height - 30), rng.integers(width - 30))
        tall, wide = (height, width) if depth == 10 else rng.integers(40, 160, size=2)
        paint = rng.uniform(0.2, 0.8) + rng.choice([0.0, 0.15]) * rng.normal(size=(height, width))
        rows, columns = slice(top, top + tall), np.arange(side, min(side + wide, width))
        left[rows, columns], shift[rows, columns] = paint[rows, columns], depth
        right[rows, columns[columns >= depth] - depth] = paint[rows, columns[columns >= depth]]
    noise = 0.02 * rng.normal(size=(2, height, width))
    return left + noise[0], right + noise[1], shift


warnings.filterwarnings("ignore", "All-NaN slice")  # a cell of unknown depth
path = os.environ.get("LATENTVIEWS_STEREO")
left, right, shift = motorcycle(path) if path else made_up()

# %%
# Matches
# -------
# Of every cell the shift at which the images differ least, and how clearly: how much more they differ at most shifts.

height, width = (side // CELL for side in left.shape)


def in_cells(pixels, summary=np.mean):
    """A number per cell."""
    whole = pixels[: height * CELL, : width * CELL].reshape(height, CELL, width, CELL)
    return summary(whole, axis=(1, 3))


costs = np.full((FARTHEST, height, width), np.inf)
for s in range(FARTHEST):
    difference = np.full(left.shape, np.inf)
    difference[:, s:] = np.abs(left[:, s:] - right[:, : left.shape[1] - s])
    costs[s] = in_cells(difference)
match = costs.argmin(axis=0).astype(float)
clearness = np.log(np.median(costs[:, :, FARTHEST // CELL :], axis=0) / costs.min(axis=0)[:, FARTHEST // CELL :])
match, truth = match[:, FARTHEST // CELL :], in_cells(shift, np.nanmedian)[:, FARTHEST // CELL :]  # what both see
width = match.shape[1]

# %%
# Windows
# -------
# A row is a window of 3 × 7 cells: a hidden shift per cell, and a match of two numbers. Shifts touch along the rows of
# the window and along its middle column, which is a tree, so that no evidence is counted twice. The left three fifths
# of the image are learnt from.

TALL, WIDE = 3, 7
N = TALL * WIDE
grid = np.arange(N).reshape(TALL, WIDE)
across = zip(grid[:, :-1].ravel().tolist(), grid[:, 1:].ravel().tolist(), strict=True)
down = zip(grid[:-1, WIDE // 2].tolist(), grid[1:, WIDE // 2].tolist(), strict=True)
edges = [*across, *down, *((cell, N + cell) for cell in range(N))]
views = [[cell] for cell in range(N)] + [[N + cell, 2 * N + cell] for cell in range(N)]


def windows(maps, begin, end, step):
    """Rows of the windows between two columns, and the corners of those."""
    rows = sorted({*range(0, height - TALL + 1, step), height - TALL})
    columns = sorted({*range(begin, end - WIDE + 1, step), end - WIDE})
    corners = [(i, j) for i in rows for j in columns]
    return np.array([[one[i : i + TALL, j : j + WIDE].ravel() for one in maps] for i, j in corners]), corners


learnt = 3 * width // 5
train, _ = windows([truth, match, clearness], 0, learnt, step=1)
model = KernelBeliefPropagation(
    edges,
    views=views,
    kernel=[Gaussian(2.0)] * N + [Gaussian(np.array([2.0, 0.6]))] * N,  # pixels; logarithms
    n_landmarks=100,
    tol=1e-2,
    random_state=0,
).fit(train.reshape(len(train), -1))

# %%
# The rest of the image
# ---------------------
# Windows overlap; a cell's shift is the mean over those that it is in.

asked, corners = windows([np.full_like(match, np.nan), match, clearness], learnt, width, step=2)
filled = model.predict(asked.reshape(len(asked), -1))[:, :N].reshape(-1, TALL, WIDE)
total, count = np.zeros((2, height, width))
for (i, j), values in zip(corners, filled, strict=True):
    total[i : i + TALL, j : j + WIDE] += values
    count[i : i + TALL, j : j + WIDE] += 1
believed = total[:, learnt:] / count[:, learnt:]

for name, found in {"matching": match[:, learnt:], "belief propagation": believed}.items():
    error = (found - truth[:, learnt:])[np.isfinite(truth[:, learnt:])]
    print(
        f"{name}: {np.abs(error).mean():.2f} pixels off on average, root mean square {np.sqrt(np.mean(error**2)):.2f}"
    )

figure, axes = plt.subplots(1, 4, figsize=(10, 3.6), layout="constrained")
axes[0].imshow(left[: height * CELL, FARTHEST + learnt * CELL :], cmap="gray")
axes[0].set_title("left image")
pictures = {"true shift": truth[:, learnt:], "match of each cell": match[:, learnt:], "belief propagation": believed}
for ax, (title, values) in zip(axes[1:], pictures.items(), strict=True):
    drawn = ax.imshow(values, vmin=0, vmax=FARTHEST, cmap="viridis")
    ax.set_title(title)
for ax in axes:
    ax.set_axis_off()
figure.colorbar(drawn, ax=axes, label="pixels (more is nearer)", shrink=0.8)
plt.show()
