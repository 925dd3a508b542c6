#!/usr/bin/env bash
# Run one part of the study of what is worth adopting; a part that was cut goes on where it was.
#   bash studies/adoption/run_adoption.sh cards            # the candidates' cards; two become arms of sparse
#   bash studies/adoption/run_adoption.sh rates batches    # learning rates on two seeds
#   bash studies/adoption/run_adoption.sh more batches     # rates beyond those whose best was at an end
#   bash studies/adoption/run_adoption.sh main batches     # the comparison, declared from the rates
#   bash studies/adoption/run_adoption.sh study            # all comparisons together, once they are finished
#   bash studies/adoption/run_adoption.sh shapes           # noise of gradients by prompts and completions of a step
# Comparisons: sparse, falls, batches.
# Then name every folder of results in studies/adoption/commit.txt, and run python -m studies.render.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
results=studies/adoption/results
part=${1:-}

keep_report() {
    mkdir -p "$results/$1"
    cp campaigns/"$1"/report/{conditions,runs,tokens}.csv "$results/$1"
    [[ $part != main ]] || cp campaigns/"$1"/report/comparisons.csv "$results/$1"
}

run_campaigns() {
    for file in "$@"; do
        [[ -e $file ]] || continue
        rlcredit campaign "$file" --threads 1
        rlcredit report "$file"
        keep_report "$(basename "$file" .yaml)"
    done
}

case $part in
cards)
    files=$(python -c 'from studies.adoption.declare_adoption import CANDIDATES; print(*CANDIDATES.values())')
    # shellcheck disable=SC2086
    rlcredit card $files --organism hinted --baseline configs/conditions/losses/grpo_reused.yaml --out cards/candidates
    mkdir -p "$results/candidates"
    cp cards/candidates/leaderboard.csv "$results/candidates"
    ;;
rates | more | main)
    [[ $part == rates ]] || python -m studies.adoption.declare_adoption "$part" --comparisons "$2"
    case $part in rates) kind=_rates ;; more) kind=_rates_more ;; main) kind= ;; esac
    run_campaigns studies/adoption/campaigns/"$2$kind"_{long_chains,delayed,hinted,many_fillers}.yaml
    ;;
shapes) PYTHONPATH=scripts python -m studies.adoption.measure_shapes --out "$results/shapes.csv" ;;
study)
    python -m studies.adoption.join_comparisons
    python -m studies.adoption.draw_adoption
    ;;
*) echo "Say what to run: cards, shapes, rates, more or main of a comparison, or study." >&2 && exit 2 ;;
esac
