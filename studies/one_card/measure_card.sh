#!/usr/bin/env bash
# Measure one card in ten minutes: three shapes beside TRL, and the tests marked gpu.
#   bash studies/one_card/measure_card.sh FOLDER                  # or $OUT, or measured_card
#   PARTS="tests large" bash studies/one_card/measure_card.sh     # some parts only
#   TINY=1 bash studies/one_card/measure_card.sh                  # small sizes, to see on a CPU that it runs
# Every part has its own time and writes as it goes, so that a call that is cut leaves figures. $WHEELS may name a
# folder of wheels for packages that the machine lacks.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${OUT:-measured_card}}
mkdir -p "$out"
export PYTHONPATH=$PWD:$PWD/scripts PYTHONUNBUFFERED=1
exec > >(tee -a "$out/log.txt") 2>&1

run_part() { # NAME SECONDS COMMAND...
    local name=$1 seconds=$2
    shift 2
    [[ " ${PARTS:-short long large tests} " == *" $name "* ]] || return 0
    echo "== $name, at most $seconds s: $*"
    local start=$SECONDS
    timeout "$seconds" "$@"
    echo "== $name: status $?, $((SECONDS - start)) s"
}

measure_shape() { # NAME SECONDS SHAPE TOKENS ROUNDS STEPS SIDE...
    local name=$1 seconds=$2 shape=$3 tokens=$4 rounds=$5 steps=$6 size=()
    shift 6
    if [[ -n ${TINY:-} ]]; then
        shape=llama_70m tokens=8 rounds=1 steps=1 size=(--prompts 2 --completions 4)
    fi
    run_part "$name" "$seconds" python scripts/bench.py --shapes "$shape" --max_tokens "$tokens" --rounds "$rounds" \
        --steps "$steps" --sides "$@" "${size[@]}" --out "$out/$name.json"
}

if [[ -n ${WHEELS:-} ]]; then
    python -m pip install --quiet --no-index --no-deps "$WHEELS"/*.whl
fi
python -c "import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else 'no card')"
measure_shape long 130 smollm2_135m 1024 1 2 ours
measure_shape short 200 smollm2_135m 256 1 2 ours trl
measure_shape large 150 qwen3_4b 512 1 1 ours
run_part tests 110 python -m pytest -n 0 -q -m gpu tests/behaviour/test_accelerator.py --junitxml "$out/tests.xml"
