"""The engine that a command line names, such as ``VLLMServer(url="http://127.0.0.1:8000")``."""

from jsonargparse import ArgumentError

from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import instantiate_described_class
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.error_messages import find_root_cause
from rlcredit.config.strict_yaml import parse_yaml
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.vllm_in_process import VLLMInProcess
from rlcredit.decoding.vllm_server import VLLMServer

_SHIPPED_ENGINES = (InProcessEngine, VLLMInProcess, VLLMServer)
"""Engines that are known by their bare names."""


def build_engine(text: str) -> Engine:
    """Return the engine that a text describes: a name, or a call of one; a class of one's own by its dotted path.

    Raises:
        ValueError: it is none, or does not take what it is given.

    Example:
        >>> build_engine("InProcessEngine(threads=1)").threads
        1

    """
    try:
        description = expand_call_forms({"engine": parse_yaml(text)}, {"engine": Engine})["engine"]
        description = {"class_path": description} if isinstance(description, str) else description
        engine = instantiate_described_class(description, Engine, "engine")
        if not isinstance(engine, Engine):
            raise TypeError("It describes nothing.")
        return engine
    except (ArgumentError, CallFormError, ValueError, TypeError) as error:
        *names, last_name = (cls.__name__ for cls in _SHIPPED_ENGINES)
        cause = " ".join(str(find_root_cause(error)).split())
        raise ValueError(
            f"--engine: {text!r:.40} makes no engine ({cause:.50}). Name {', '.join(names)} or {last_name}, or a class "
            "of your own."
        ) from None
