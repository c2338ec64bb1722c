"""A loaded model is the saved one to the last bit, and a file that is no model is one sentence."""

import inspect
import json
import os
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from catalogue import FEATURES, MODELS, OF_OTHER_ROWS, ROWS, VARIANTS
from latentviews import (
    Delta,
    Gaussian,
    MultiViewMixture,
    OneHotFeatures,
    Precomputed,
    diagnose,
    load,
    rank_test,
    save,
)
from latentviews.datasets import make_multiview
from latentviews.io.naming import class_of
from latentviews.io.register import CLASSES, FOREIGN
from latentviews.io.saving import FORMAT, VERSION, SavingError


@pytest.fixture
def data():
    return make_multiview(400, 2, n_views=4, random_state=0).X


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.latentviews"


def again(value, path):
    save(value, path)
    return load(path)


def same(a, b):
    """Whether two values are alike to the last bit."""
    if isinstance(a, BaseEstimator) or (hasattr(a, "__dataclass_fields__")):
        names = vars(a) if isinstance(a, BaseEstimator) else a.__dataclass_fields__
        return type(a) is type(b) and all(same(getattr(a, name), getattr(b, name)) for name in names)
    if sparse.issparse(a):
        return type(a) is type(b) and a.shape == b.shape and (abs(a - b)).nnz == 0
    if isinstance(a, np.ndarray):
        bits = a.dtype == b.dtype and a.shape == b.shape
        return bits and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and (a == b or a != a)


@pytest.mark.parametrize("model", [*MODELS, *OF_OTHER_ROWS, *VARIANTS], ids=repr)
def test_a_loaded_model_answers_the_same_to_the_last_bit(model, path):
    fitted, rows = model.fit(), ROWS[:50] + 0.01 if model.rows is ROWS else model.rows[:50]

    loaded = again(fitted, path)

    assert same(fitted, loaded)
    assert repr(clone(loaded)) == repr(clone(fitted))
    assert same(model.answers(loaded, rows), model.answers(fitted, rows))


def test_a_loaded_model_can_do_all_that_the_saved_one_can(data, path):
    model = MultiViewMixture("auto", random_state=0).fit(data)

    loaded = again(model, path)

    assert loaded.bic(data) == model.bic(data)
    assert same(loaded.sample(5), model.sample(5))
    assert same(loaded.bootstrap(data, 3, random_state=0), model.bootstrap(data, 3, random_state=0))
    assert same(loaded.rank_test_, model.rank_test_)
    assert same(diagnose(loaded, data, n_permutations=9, random_state=0).dependence.pvalue,
                diagnose(model, data, n_permutations=9, random_state=0).dependence.pvalue)  # fmt: skip
    assert loaded.set_params(warm_start=True).fit(data).start_objectives_.keys() == {"warm"}


def every_estimator():
    """The registered estimators that can be made without an argument."""
    for kind in map(class_of, CLASSES):
        if issubclass(kind, BaseEstimator):
            parameters = inspect.signature(kind).parameters.values()
            if all(p.default is not p.empty for p in parameters if p.kind is not p.VAR_KEYWORD):
                yield kind


@pytest.mark.parametrize("kind", list(every_estimator()), ids=lambda kind: kind.__name__)
def test_every_estimator_of_the_package_can_be_saved_unfitted(kind, path):
    assert same(again(kind(), path), kind())


@pytest.mark.parametrize(
    "phi",
    [
        *FEATURES,
        RBFSampler(n_components=10, random_state=0),
        make_pipeline(StandardScaler(), PolynomialFeatures(2), PCA(3)),
    ],
    ids=repr,
)
def test_feature_maps_transform_as_before(phi, data, path):
    rows = data[:, :1].round()  # few values, for one-hot maps
    phi = clone(phi).fit(rows)

    assert again(phi, path).transform(rows).tobytes() == phi.transform(rows).tobytes()


@pytest.mark.parametrize(
    "value",
    [
        [1, -2.5, 0.1, True, None, "text", 10**30],
        [float("nan"), float("inf"), -float("inf")],
        {"a": 1, ("b", 2): {"c": ()}, 3: frozenset({1}), None: {1, 2}},
        (1, (2, [3, range(1, 9, 2)])),
        [np.float32(0.1), np.int64(7), np.bool_(True), np.str_("µ")],
        np.array([["a", None], ["b", 1.5]], dtype=object),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2],
        np.arange(2000.0)[::1000],
        np.array(["x", "yy"]),
        np.empty((0, 3), dtype=np.float32),
        sparse.csr_array(np.eye(3)),
        sparse.csc_matrix(np.eye(3)),
    ],
    ids=lambda value: str(value)[:30].replace("\n", " "),
)
def test_values_keep_their_type(value, path):
    class_of_one = Delta()
    class_of_one.value_ = value

    loaded = again(class_of_one, path).value_

    assert same(value, loaded)
    if isinstance(value, np.ndarray) and value.nbytes > 16:
        assert loaded.strides == value.strides


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_random_generators_go_on_where_they_were(make, path):
    model = MultiViewMixture(random_state=make(3))
    model.random_state.normal(size=5)

    loaded = again(model, path)

    assert loaded.random_state.normal(size=3).tolist() == model.random_state.normal(size=3).tolist()


def test_a_thing_that_occurs_twice_is_one_thing_again(data, path):
    model = MultiViewMixture(2, exchangeable=True, random_state=0).fit(data)
    assert model.components_[0] is model.components_[3]

    loaded = again(model, path)

    assert loaded.components_[0] is loaded.components_[3]


def test_large_arrays_that_are_equal_are_written_once(path):
    """Clones of a kernel hold the same Gram matrix, each its own."""
    points = np.random.default_rng(0).normal(size=(60, 2))
    gram = Gaussian(1.0).gram(points, points)
    save([Precomputed(gram.copy()), Precomputed(gram.copy()), Precomputed(np.asfortranarray(gram[::-1]))], path)

    one, other, turned = load(path)

    assert sum(name.endswith(".npy") for name in zipfile.ZipFile(path).namelist()) == 2
    for matrix, expected in ((one.matrix, gram), (other.matrix, gram), (turned.matrix, gram[::-1])):
        np.testing.assert_array_equal(matrix, expected)
    assert turned.matrix.flags.f_contiguous


def test_records_are_saved_by_themselves(data, path):
    test = rank_test(data, n_permutations=19, random_state=0)

    assert same(again(test, path), test)


def test_who_watches_a_fit_is_not_saved(data, path):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

    class Watcher:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context, **kwargs): ...
        def on_fit_task_end(self, estimator, context, **kwargs): ...
        def teardown(self, estimator, context): ...

    model = MultiViewMixture(2, polish=None, random_state=0).set_callbacks(Watcher()).fit(data)

    assert not hasattr(again(model, path), "_skl_callbacks")


def test_a_parameter_newer_than_the_file_has_its_default(path):
    model = MultiViewMixture(3)
    del model.warm_start

    assert again(model, path).get_params() == MultiViewMixture(3).get_params()


def test_the_same_model_makes_the_same_file(data, tmp_path):
    for name in "ab":
        save(MultiViewMixture(2, random_state=0).fit(data), tmp_path / name)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_much_smaller_than_large_data(path):
    save(MultiViewMixture(2, random_state=0).fit(make_multiview(50_000, 2, random_state=0).X), path)

    assert path.stat().st_size < 500_000  # the rows are 1,200,000 bytes


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (lambda x: x, r"features is the function <lambda>, which cannot be saved without pickle\. Use a class"),
        (
            FunctionTransformer(np.log),
            r"features is a sklearn\..*FunctionTransformer, which .* Of other packages, only",
        ),
        (Gaussian, "features is the class Gaussian"),
        (object(), r"features is a builtins\.object, .* Turn it into numbers"),
        ([{"deep": len}], r"features\[0\]\['deep'\] is the function len"),
    ],
    ids=["function", "foreign estimator", "class", "object", "nested"],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(part, sentence, path):
    path.write_bytes(b"old")

    with pytest.raises(SavingError, match=sentence):
        save(MultiViewMixture(features=part), path)

    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_what_is_no_model_or_no_place_is_refused(tmp_path, path):
    model = MultiViewMixture(2)

    with pytest.raises(IsADirectoryError, match=r"A model cannot be written: .* is a directory; name a file in it"):
        save(model, tmp_path)
    with pytest.raises(TypeError, match="path must be the name of a file, a string or a Path; got 5"):
        save(model, 5)
    with pytest.raises(
        ValueError, match="path must be the name of a file, whose parts have at most 255 bytes; got 'aaa"
    ):
        save(model, 300 * "a")
    with pytest.raises(TypeError, match="path must be the name of a file, a string or a Path; got None"):
        load(None)
    for nothing in (5, None, "model", np.eye(2)):
        with pytest.raises(SavingError, match="save takes an estimator or a record of latentviews; got"):
            save(nothing, path)
    assert not path.exists()


def test_a_thing_inside_itself_is_refused(path):
    model = MultiViewMixture()
    model.features = model

    with pytest.raises(SavingError, match="contains itself"):
        save(model, path)


def test_an_interrupted_save_keeps_the_old_file(path, monkeypatch):
    path.write_bytes(b"old")

    def interrupt(array):
        raise KeyboardInterrupt

    monkeypatch.setattr("latentviews.io.saving._npy", interrupt)

    with pytest.raises(KeyboardInterrupt):
        save(OneHotFeatures().fit(np.eye(2)), path)

    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_place_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"A model cannot be written: there is no directory .*nowhere; make it first"
    ):
        save(Delta(), tmp_path / "nowhere" / "model.latentviews")


def test_what_is_no_plain_file_stays_and_a_link_stays_one(tmp_path):
    pipe, link, there = (tmp_path / name for name in ("pipe", "link", "model.latentviews"))
    os.mkfifo(pipe)
    link.symlink_to(there)

    with pytest.raises(FileExistsError, match=r"A model cannot be written: .*pipe is there, and no plain file"):
        save(Delta(), pipe)
    save(Delta(), link)

    assert pipe.is_fifo()
    assert link.is_symlink()
    assert load(there).get_params() == load(link).get_params()


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x80\x04\x95."], ids=["empty", "csv", "pickle"])
def test_a_foreign_file_is_one_sentence(content, path):
    path.write_bytes(content)

    with pytest.raises(SavingError, match="is not a model that latentviews saved"):
        load(path)


def test_a_foreign_zip_is_one_sentence(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("something.txt", "else")

    with pytest.raises(SavingError, match="not a model that latentviews saved"):
        load(path)


def test_a_directory_is_one_sentence(tmp_path):
    with pytest.raises(SavingError, match="is a directory"):
        load(tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_short_is_one_sentence(share, data, path):
    save(MultiViewMixture(2, polish=None, random_state=0).fit(data), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])

    with pytest.raises(SavingError, match="cut short"):
        load(path)


def test_a_flipped_bit_is_noticed(data, path):
    save(MultiViewMixture(2, polish=None, random_state=0).fit(data), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))

    with pytest.raises(SavingError, match=r"cut short|damaged"):
        load(path)


def rewrite(path, **changes):
    """The file with some of its tree changed."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(entries["model.json"]) | changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"model.json": json.dumps(tree).encode()}).items():
            archive.writestr(name, content)


def test_a_newer_format_is_one_sentence(path):
    save(MultiViewMixture(), path)
    rewrite(path, version=VERSION + 1, latentviews="9.0")

    with pytest.raises(SavingError, match=r"saved by latentviews 9\.0 in format 3; .* Install a newer latentviews"):
        load(path)


@pytest.mark.parametrize("version", [0, -1, 2.0, True, "2", None], ids=repr)
def test_a_format_that_never_was_is_one_sentence(version, path):
    save(MultiViewMixture(), path)
    rewrite(path, version=version)

    with pytest.raises(
        SavingError, match=rf"no model that latentviews saved: its format must be 1, 2, …; got {version!r}"
    ):
        load(path)


TAMPERED = [
    ("os", "system"),
    ("builtins", "eval"),
    ("subprocess", "Popen"),
    ("latentviews.io.saving", "os"),
    ("latentviews.io.saving", "importlib.import_module"),
    ("latentviews.io.saving", "Path"),
    ("latentviews.io.model_reader", "Reader"),
    ("latentviews.core.embeddings", "Components"),  # abstract
    ("latentviews.core..kernels", "Gaussian"),
    ("sklearn.pipeline", "Gaussian"),
    ("latentviews.kernels", "PCA"),
    ("../latentviews", "Gaussian"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.pipeline", "make_pipeline"),
    (["os"], "system"),
]


@pytest.mark.parametrize(
    "written",
    [
        *map(list, TAMPERED),
        *[name for _, name in TAMPERED if name not in CLASSES and name not in FOREIGN],
        "latentviews.core.kernels.real.Gaussian",
        "core.kernels.real:Gaussian",
        "",
        None,
        7,
        {"Gaussian": 1},
        [],
        ["Gaussian"],
        ["latentviews.kernels", "Gaussian", "gram"],
    ],
    ids=str,
)
def test_tampered_class_names_are_refused(written, path):
    save(MultiViewMixture(), path)
    rewrite(path, objects=[{"class": written, "state": {}}], root={"object": 0})

    with pytest.raises(SavingError, match="damaged model file"):
        load(path)


def test_a_module_that_is_not_of_the_package_is_not_even_imported(path, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    save(MultiViewMixture(), path)
    for written in (["trap", "Trap"], "trap.Trap", ["trap", "Gaussian"], ["latentviews.trap", "Trap"]):
        rewrite(path, objects=[{"class": written, "state": {}}], root={"object": 0})

        with pytest.raises(SavingError, match=r"names the class \S*trap\.\w+, which is no estimator"):
            load(path)
    assert not {"trap", "latentviews.trap"} & set(sys.modules)


@pytest.mark.parametrize(
    "root",
    [
        {"eval": "1"},
        {"float": "__import__('os')"},
        {"object": 5},
        {"object": -1},
        {"array": {"entry": 99, "strides": None}},
        {"array": {"entry": "../../secret", "strides": None}},
        {"array": 99},
        {"sparse": ["__class__", [1, 1], [0, 0, 0]]},
        {"random": ["Generator", {"dict": [["bit_generator", "seed"]]}]},
        {"dict": [1]},
        {"tuple": 3, "list": 4},
        [[{"range": ["a"]}]],
    ],
    ids=str,
)
def test_a_tampered_tree_is_one_sentence(root, path):
    save(MultiViewMixture(), path)
    rewrite(path, root=root)

    with pytest.raises(SavingError, match="damaged model file"):
        load(path)


def test_an_array_is_not_spread_over_all_memory(path):
    save(OneHotFeatures().fit(np.eye(2)), path)
    rewrite(path, root={"array": {"entry": 0, "strides": [2**50, 8]}})

    with pytest.raises(SavingError, match=r"spreads an array of 32 bytes over \d+"):
        load(path)


def test_a_pickle_inside_does_not_run(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        tree = {"format": FORMAT, "version": VERSION, "objects": [], "root": {"array": {"entry": 0, "strides": None}}}
        archive.writestr("model.json", json.dumps(tree))
        archive.write(tmp_path / "trap.npy", "arrays/0.npy")

    with pytest.raises(SavingError, match="allow_pickle=False"):
        load(path)
    assert not (tmp_path / "ran").exists()


def test_a_state_that_is_not_the_fields_of_a_record_is_refused(path):
    save(MultiViewMixture(), path)
    node = {"class": "Decomposition", "state": {"values": 1, "nonsense": 2}}
    rewrite(path, objects=[node], root={"object": 0})

    with pytest.raises(SavingError, match="damaged model file"):
        load(path)
