#!/usr/bin/env bash
# Run one part of the study of credit between turns; a part that was cut goes on where it was.
#   bash studies/turns/run_turns.sh density    # signal-to-noise and agreement before training
#   bash studies/turns/run_turns.sh rates      # learning rates on two seeds
#   bash studies/turns/run_turns.sh more       # rates beyond those whose best was at an end
#   bash studies/turns/run_turns.sh main       # the comparison, declared from the rates
# Then name every folder and file of results in studies/turns/commit.txt, and run python -m studies.render.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
results=studies/turns/results

run_campaigns() {
    for game in corridor_1 corridor_4th corridor_16th bisection running_sum; do
        rlcredit campaign "studies/turns/campaigns/$1_$game.yaml" --threads 1
        rlcredit report "studies/turns/campaigns/$1_$game.yaml"
        mkdir -p "$results/$1_$game"
        cp campaigns/"$1_$game"/report/{conditions,runs,tokens}.csv "$results/$1_$game"
        [[ $1 != turns ]] || cp campaigns/"$1_$game"/report/comparisons.csv "$results/$1_$game"
    done
}

case ${1:-} in
density) python -m studies.turns.measure_density --out "$results/density.csv" ;;
rates) run_campaigns turns_rates ;;
more) python -m studies.turns.declare_turns more && run_campaigns turns_rates_more ;;
main) python -m studies.turns.declare_turns main && run_campaigns turns ;;
*) echo "Say what to run: density, rates, more or main." >&2 && exit 2 ;;
esac
