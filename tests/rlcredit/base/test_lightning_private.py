"""What each use of Lightning's private interface is for, beside what Lightning does without it."""

import importlib.util
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
from lightning.fabric.strategies.launchers import subprocess_script
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.demos.boring_classes import BoringModel

from rlcredit.base.lightning_private import (
    CheckpointTimes,
    DeferredCheckpoint,
    OpenCLI,
    build_state_key,
    read_callbacks,
    read_checkpoint_times,
    read_datamodule,
    read_loop_states,
    replace_end_of_failed_run,
)


class Widened(BoringModel):
    """A model with an argument."""

    def __init__(self, width: int = 1):
        super().__init__()
        self.width = width


def make_trainer(path, *callbacks, **settings):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}
    return Trainer(default_root_dir=path, callbacks=list(callbacks), **{**quiet, **settings})


def fit(path, *callbacks):
    trainer = make_trainer(path, *callbacks, max_steps=2, limit_val_batches=0)
    trainer.fit(BoringModel())
    return trainer


def test_callbacks_and_data_are_the_trainer_s_own(tmp_path):
    callback = Callback()
    trainer = make_trainer(tmp_path, callback, enable_checkpointing=False)
    assert callback in read_callbacks(trainer)
    assert read_callbacks(trainer) is trainer.callbacks
    assert read_datamodule(trainer) is None


def test_two_callbacks_of_one_class_have_two_keys_where_lightning_has_one():
    first, second = Callback(), Callback()
    assert first.state_key == second.state_key == "Callback"
    assert build_state_key(first, {"beta": 0.1}) == "Callback{'beta': 0.1}" != build_state_key(second, {"beta": 0.2})


def test_the_state_of_the_loops_is_what_a_checkpoint_stores(tmp_path):
    kept = {}

    class Keep(Callback):
        def on_train_batch_end(self, trainer, *args):
            kept[trainer.global_step] = read_loop_states(trainer)["fit_loop"]["epoch_loop.batch_progress"]["total"]

    fit(tmp_path, Keep(), saver := ModelCheckpoint(tmp_path, save_top_k=-1, every_n_train_steps=1))
    stored = torch.load(saver.best_model_path, weights_only=True)["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    assert kept[2]["ready"] == stored["total"]["ready"] == 2
    assert kept[1]["ready"] == 1, "the step that it belongs to, not the next"


def test_when_a_callback_saves_is_read():
    assert read_checkpoint_times(ModelCheckpoint(every_n_train_steps=3)) == CheckpointTimes(3, has_other_time=False)
    for other in ({"every_n_epochs": 1}, {"train_time_interval": timedelta(1)}, {"save_on_exception": True}):
        assert read_checkpoint_times(ModelCheckpoint(**other)).has_other_time
        assert not hasattr(ModelCheckpoint(**other), "every_n_train_steps"), "there is no public name"


def test_a_failed_run_is_ended_by_ours_where_lightning_kills_the_first_process(monkeypatch):
    spec = importlib.util.find_spec(subprocess_script.__name__)
    fresh = importlib.util.module_from_spec(spec)  # runs in this process may have replaced the function already
    spec.loader.exec_module(fresh)
    theirs = fresh._ChildProcessObserver._terminate_all
    monkeypatch.setattr(subprocess_script._ChildProcessObserver, "_terminate_all", theirs)  # put back at the end
    first = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"], stderr=subprocess.DEVNULL)
    child.wait()
    ended = []
    replace_end_of_failed_run(ended.append)
    assert subprocess_script._ChildProcessObserver(first.pid, [child])._run()
    assert ended == [[child]]
    assert first.poll() is None
    monkeypatch.setattr(subprocess_script._ChildProcessObserver, "_terminate_all", theirs)
    assert subprocess_script._ChildProcessObserver(first.pid, [child])._run()
    assert first.wait() == -signal.SIGKILL


class Steps(Callback):
    """Note the checkpoints that there are at the end of each step."""

    def __init__(self, folder):
        self.folder, self.seen = folder, []

    def on_train_epoch_end(self, *args):
        self.seen.append(len([*self.folder.glob("*.ckpt")]))


@pytest.mark.parametrize(("cls", "written"), [(ModelCheckpoint, 2), (DeferredCheckpoint, 0)])
def test_a_checkpoint_is_written_when_told_to_where_lightning_writes_it_at_once(tmp_path, cls, written):
    saver = cls(tmp_path, "{step}", save_top_k=-1, every_n_train_steps=1)
    fit(tmp_path, saver, Steps(tmp_path))
    assert len([*tmp_path.glob("*.ckpt")]) == written
    assert getattr(saver, "is_due", False) == (written == 0)


def test_a_deferred_checkpoint_is_written_linked_and_removed_as_its_class_says(tmp_path):
    class Saver(DeferredCheckpoint):
        linked, asked = [], []

        def link_checkpoint(self, path, link):
            self.linked.append(link)

        def is_superseded(self, previous, current):
            self.asked.append(previous)
            return False

        def on_train_batch_start(self, trainer, *args):
            if trainer.global_step:
                self.save_candidate(trainer)

    saver = Saver(tmp_path, "{step}", monitor="step", mode="max", save_top_k=1, save_last="link", every_n_train_steps=1)
    trainer = fit(tmp_path, saver)
    assert saver.saved_step == 1
    saver.saved_step = 0
    saver.save_candidate(trainer)
    saver.overwrite_best(trainer)
    assert saver.saved_step == 2
    assert [path.name for path in sorted(tmp_path.glob("*.ckpt"))] == ["step=1.ckpt", "step=2.ckpt"]
    assert saver.asked[0] == str(tmp_path / "step=1.ckpt"), "Lightning would have removed it"
    assert saver.linked == [str(tmp_path / "last.ckpt")] * 2


def run_cli(cli, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["test"])
    trainer = {"logger": False, "enable_progress_bar": False}
    settings = dict(argument.removeprefix("--").split("=") for argument in arguments)
    words = {"command": "fit", "values": settings} if issubclass(cli, OpenCLI) else {"args": ["fit", *arguments]}
    return cli(
        Widened,
        **words,
        trainer_defaults=trainer,
        save_config_callback=None,
        seed_everything_default=0,
    )


@pytest.mark.parametrize(("base", "width"), [(LightningCLI, 7), (OpenCLI, 1)])
def test_a_checkpoint_changes_no_configuration_where_lightning_lets_it(tmp_path, monkeypatch, base, width):
    torch.save({"hyper_parameters": {"width": 7}}, tmp_path / "x.ckpt")

    class Parsed(base):
        def run_subcommand(self, subcommand):
            pass

        _run_subcommand = run_subcommand

    assert run_cli(Parsed, monkeypatch, f"--ckpt_path={tmp_path / 'x.ckpt'}").config.fit.model.width == width


def test_a_command_has_options_of_its_own_and_is_run_inside_another_function(tmp_path, monkeypatch):
    class Marked(OpenCLI):
        def add_subcommand_arguments(self, subcommand, parser):
            if subcommand == "fit":
                parser.add_argument("--mark", type=int)

        def run_subcommand(self, subcommand):
            self.ran = subcommand, self.config.fit.mark, self.get_instantiated("model").width

    assert not hasattr(LightningCLI, "run_subcommand")
    assert not hasattr(LightningCLI, "add_subcommand_arguments")
    cli = run_cli(Marked, monkeypatch, "--mark=3")
    assert cli.ran == ("fit", 3, 1)
    assert "--mark" in cli.get_subcommand_parser("fit").format_help()
    assert "--mark" not in cli.get_subcommand_parser("validate").format_help()


def test_only_the_command_that_is_given_describes_its_arguments(monkeypatch):
    class Parsed(OpenCLI):
        def run_subcommand(self, subcommand):
            pass

    cli = run_cli(Parsed, monkeypatch)
    assert "--trainer.max_steps" in cli.get_subcommand_parser("fit").format_help()
    assert "--trainer.max_steps" not in cli.get_subcommand_parser("validate").format_help()
