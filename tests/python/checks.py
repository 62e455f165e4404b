#!/usr/bin/env python3
"""The Python package, wherever it is imported from, against the program: checks.py HBMSIM FOLDER.
FOLDER is the source tree's, for its examples. Prints TAP."""
import json
import subprocess
import sys
import threading
import types
import warnings

import hbmsim

HBMSIM, TREE = sys.argv[1], sys.argv[2]
FILE = TREE + "/examples/quickstart/model.yaml"
MODEL = {"hbmsim": 1, "model": {"preset": "llama3-8b"}, "batch": {"global": 32, "seq": 8192},
         "optimizer": {"name": "adamw"}, "mesh": {"fsdp": 8}, "remat": {"policy": "full"},
         "hardware": {"device": "nvidia-h100", "count": 8}, "compiler": "xla-gpu"}
SMALL = {"plan.search.mesh": [{"fsdp": 8}], "plan.search.remat": True}


def said(*words):
    return subprocess.run([HBMSIM, *words], capture_output=True, check=False).stdout


def raised(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        return str(error)
    return None


def test_a_dict_a_path_and_text_are_the_same():
    text = open(FILE, encoding="utf-8").read()
    answers = {hbmsim.simulate(m, full=False).text for m in (MODEL, FILE, text)}
    assert answers == {said("simulate", "--json", FILE)}


def test_simulate_has_names_for_what_is_asked():
    r = hbmsim.simulate(MODEL)
    assert r.fits and r.verdict == "fits" and r.peak_bytes == r.data["peak_bytes"]
    assert sum(r.categories.values()) == r.peak_bytes and r.tensors[0]["bytes"] > 0
    assert 0 < r.step_seconds < 100 and r.mfu == r.data["mfu"] and "mfu" in dir(r)
    assert str(r).startswith("FITS: 55.41 GiB of 59.33 GiB")
    assert "its keys: " in raised(AttributeError, getattr, r, "nothing")


def test_what_does_not_fit_is_no_error():
    r = hbmsim.simulate(MODEL, sets={"batch.seq": 131072})
    assert not r.fits and r.verdict == "does not fit"


def test_results_are_pictures_in_a_notebook():
    r = hbmsim.simulate(MODEL)
    for shown in (r, hbmsim.sweep(MODEL, {"batch.seq": [2048, 4096]}, "batch.global=16,32"),
                  hbmsim.advise(MODEL), hbmsim.plan(MODEL, sets=SMALL)):
        page = shown._repr_html_()
        assert "<svg" in shown._repr_svg_() and "<?xml" not in page and page.endswith("</div>")
        assert "</svg>" in page
    assert r.plot(theme="dark").svg != r.plot().svg
    assert "'x' is not one of" in raised(hbmsim.InputError, r.plot, "x")


def test_plan_is_a_configuration():
    p = hbmsim.plan(MODEL, sets=SMALL, seconds=60)
    assert p.found and p.status in ("best", "optimal")
    again = hbmsim.simulate(p.configuration)
    assert again.peak_bytes == p.prediction["peak_bytes"] and again.fits
    none = hbmsim.plan(MODEL, sets={**SMALL, "batch.seq": 1048576})
    assert not none.found and str(none).startswith("no plan fits")


def test_sweep_and_advise_are_the_commands():
    s = hbmsim.sweep(FILE, "batch.seq=2048..8192*2", {"batch.global": [16, 32]})
    assert s.text == said("sweep", "--json", FILE, "--x", "batch.seq=2048..8192*2", "--y",
                          "batch.global=16,32")
    assert len(s.cells) == 6 and len(s.fitting()) == 6
    assert hbmsim.advise(FILE).text == said("advise", "--json", FILE)


def test_from_hf():
    path = TREE + "/examples/import/config.json"
    loaded = json.load(open(path, encoding="utf-8"))
    transformers_like = types.SimpleNamespace(to_dict=lambda: loaded)
    keys = {"batch": {"global": 8, "seq": 4096}, "mesh": {"fsdp": 8},
            "hardware": {"device": "h100", "count": 8}}
    made = [hbmsim.from_hf(c, **keys) for c in (path, TREE + "/examples/import", loaded,
                                                transformers_like)]
    assert all(m["model"] == made[0]["model"] and m["batch"]["global"] == 8 for m in made)
    assert hbmsim.simulate(made[0]).fits
    assert hbmsim.import_config(path)["understood"]
    assert "config.json" in raised(hbmsim.InputError, hbmsim.from_hf, TREE + "/config.json")


def test_errors_have_their_place():
    text = raised(hbmsim.InputError, hbmsim.simulate, "hbmsim: 1\nbatch: {sequ: 4}\n")
    assert "model.yaml:2:9: error: batch: unknown key 'sequ'; did you mean 'seq'?" in text
    assert raised(ValueError, hbmsim.simulate, {"batch": 3})
    assert "cannot be read" in raised(hbmsim.Error, hbmsim.simulate, "no.yaml")
    assert "--confidence" in raised(hbmsim.InputError, hbmsim.simulate, MODEL, confidence=3)


def test_remarks_are_warnings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hbmsim.simulate(TREE + "/examples/import/config.json")
    assert [w.category for w in caught] == [hbmsim.HbmsimWarning] * 2
    assert "read as Hugging Face config.json" in str(caught[0].message)
    assert "defaults are taken" in str(caught[1].message)
    assert caught[0].filename == __file__


def test_threads():
    wanted = hbmsim.simulate(MODEL).text
    wrong = []
    workers = [threading.Thread(target=lambda: wrong.extend(
        1 for _ in range(10) if hbmsim.simulate(MODEL).text != wanted)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


class FakeTorch(types.ModuleType):
    """What measure() asks of torch 2.9, with figures."""

    class OutOfMemoryError(RuntimeError):
        pass

    def __init__(self):
        super().__init__("torch")
        self.__version__ = "2.9.0"
        self.calls = []
        self.cuda = types.SimpleNamespace(
            is_available=lambda: True, synchronize=lambda: self.calls.append("sync"),
            reset_peak_memory_stats=lambda: self.calls.append("reset"),
            memory_stats=lambda: {"allocated_bytes.all.peak": 5 << 30,
                                  "reserved_bytes.all.peak": 6 << 30})


def with_fake_torch(work):
    fake = FakeTorch()
    before = sys.modules.get("torch")
    sys.modules["torch"] = fake
    try:
        return work(fake)
    finally:
        sys.modules.pop("torch")
        if before:
            sys.modules["torch"] = before


TORCH = {**MODEL, "compiler": "torch"}


def test_measure_torch():
    def work(fake):
        with hbmsim.measure(TORCH, id="mine") as run:
            run.step()
            run.step()
        record, = run.records
        assert fake.calls == ["sync", "reset", "sync"]
        assert record["id"] == "mine" and record["versions"] == {"torch": "2.9.0"}
        assert record["measured"]["peak_bytes"] == 5 << 30
        assert record["measured"]["step_seconds"] > 0
        with hbmsim.measure(TORCH, reserved=True) as run:
            pass
        assert run.records[0]["measured"]["peak_bytes"] == 6 << 30
    with_fake_torch(work)


def test_measure_out_of_memory_is_recorded_and_raised_on():
    def work(fake):
        run = hbmsim.measure(TORCH)

        def fail():
            with run:
                raise fake.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
                                            "has a total capacity of 79.11 GiB of which 1.00 GiB is"
                                            " free.")
        assert "out of memory" in raised(fake.OutOfMemoryError, fail)
        assert run.records[0]["measured"]["fits"] is False
    with_fake_torch(work)


def test_measure_says_that_nothing_was_measured():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with hbmsim.measure(MODEL, id="nothing") as run:
            run.step()
    assert not run.records
    assert [w.category for w in caught] == [hbmsim.HbmsimWarning]
    assert "nothing was measured" in str(caught[0].message)


def test_measure_refuses_what_is_no_configuration():
    def work(_):
        def fail():
            with hbmsim.measure({"batch": {"sequ": 1}}):
                pass
        assert raised(hbmsim.InputError, fail).startswith("model:1:")
    with_fake_torch(work)


def test_measure_jax():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return "jax is not installed"
    with hbmsim.measure(MODEL, id="step") as run:
        run.jax(lambda w, x: w - 0.1 * jnp.tanh(x @ w), jnp.ones((64, 64)), jnp.ones((8, 64)).T @
                jnp.ones((8, 64)), steps=2)
    first = run.records[0]
    assert first["id"] == "step" and first["versions"] == {"jax": jax.__version__}
    assert first["measured"]["argument_bytes"] == 2 * 64 * 64 * 4
    assert first["measured"]["step_seconds"] > 0
    return None


def test_version_is_the_programs():
    assert said("--version").decode().split() == ["hbmsim", hbmsim.__version__]


def main():
    tests = [(name, test) for name, test in sorted(globals().items()) if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        title = name[len("test_"):].replace("_", " ")
        try:
            skipped = test()
        except Exception:  # pylint: disable=broad-except
            import traceback
            failed += 1
            print(f"not ok {number} - {title}")
            print("# " + traceback.format_exc().replace("\n", "\n# "))
            continue
        print(f"ok {number} - {title}" + (f" # SKIP {skipped}" if skipped else ""))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
