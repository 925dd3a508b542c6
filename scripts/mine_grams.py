"""Mine strategic grams from successful completions: n-grams, embedded, clustered, the clusters found in most solutions.

rlcredit fit --config configs/tiny.yaml --condition mining --model.optimizer.init_args.lr 0 --trainer.max_steps 20 \
    --trainer.val_check_interval 20 --completions.every_n_steps 1 --completions.rows 128
python scripts/mine_grams.py runs/mining-seed0/completions --out rlcredit/tiny/grams.json --clusters 20

The pipeline of HICRA (Wang et al., 2025, arXiv:2509.03646): all n-grams of three to five words of successful solutions;
sentence embeddings; clusters of like meaning; for each cluster the number of distinct solutions that hold any of its
members (cluster document frequency); the members of the most frequent fifth of the clusters. What the paper leaves open
is chosen here: all-MiniLM-L6-v2; k-means; words made of letters only, so that no gram runs across a formula; and a
phrase of nearly every solution, such as the one that announces the answer, steers nothing and is left out.

"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.cluster.vq import kmeans2

from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.formulas.spans import APOSTROPHE_PATTERN
from rlcredit.policy.model_loading import load_sentence_encoder

GRAM_LENGTHS = (3, 4, 5)
_WORD_PATTERN = rf"[^\W\d_]+(?:{APOSTROPHE_PATTERN}[^\W\d_]+)*"
_PROSE_PATTERN = re.compile(rf"{_WORD_PATTERN}(?:[ ,-]+{_WORD_PATTERN})*")
"""Words in a row, with nothing but spaces, commas and hyphens between them."""


def extract_grams(text: str) -> set[str]:
    """Return the n-grams of a text, in lower case; none runs across a number, a sign or the end of a sentence.

    Example:
        >>> sorted(extract_grams("Let me check: 4 + 5 = 9"))
        ['let me check']

    """
    grams: set[str] = set()
    for run in _PROSE_PATTERN.findall(text.lower()):
        words = [re.sub(APOSTROPHE_PATTERN, "'", word) for word in re.findall(_WORD_PATTERN, run)]
        grams.update(" ".join(words[i : i + n]) for n in GRAM_LENGTHS for i in range(len(words) - n + 1))
    return grams


def frequent_clusters(
    solutions: Sequence[set[str]], labels: dict[str, int], share: float, max_share: float = 1.0
) -> list[int]:
    """Return the ``share`` of clusters that occur in most solutions, the most frequent first.

    Args:
        solutions: Grams of each solution.
        labels: Cluster of each gram.
        share: Share of the clusters that is returned, in (0, 1].
        max_share: Largest share of the solutions in which a returned cluster may occur.

    Example:
        >>> solutions, labels = [{"a", "b"}, {"a"}, {"c"}], {"a": 0, "b": 0, "c": 1}
        >>> frequent_clusters(solutions, labels, share=0.5), frequent_clusters(solutions, labels, 0.5, max_share=0.5)
        ([0], [1])

    """
    present = [{labels[gram] for gram in grams if gram in labels} for grams in solutions]
    clusters = sorted(set(labels.values()))
    frequency = {cluster: sum(cluster in solution for solution in present) for cluster in clusters}
    ranking = sorted(clusters, key=lambda cluster: (-frequency[cluster], cluster))
    rare = [cluster for cluster in ranking if frequency[cluster] <= max_share * len(solutions)]
    return rare[: max(1, round(share * len(ranking)))]


def read_right_completions(paths: Iterable[Path]) -> list[str]:
    """Read the completions that were right from JSON lists or JSON lines of records; each text once."""
    texts: dict[str, None] = {}
    for path in paths:
        content = path.read_text(encoding="utf-8")
        records = json.loads(content) if content.lstrip().startswith("[") else map(json.loads, content.splitlines())
        texts.update(
            (record["completion"], None)
            for record in records
            if record.get("verdict", record.get("reward")) in ("right", 1)
        )
    return list(texts)


def main() -> None:
    """Write the grams and how they were found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a file, or the folder of a run")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.2, help="share of the clusters that is kept")
    parser.add_argument("--most", type=float, default=0.8, help="share of the solutions that a cluster may occur in")
    parser.add_argument("--fewest", type=int, default=3, help="solutions that must hold a gram for it to be considered")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    silence_libraries()
    if not args.out.parent.is_dir() or not args.source.exists():
        parser.error(f"{args.source} and the folder of {args.out} must exist.")
    files = sorted(args.source.rglob("step_*.json")) if args.source.is_dir() else [args.source]
    solutions = [extract_grams(text) for text in read_right_completions(files)]
    counts = Counter(gram for grams in solutions for gram in grams)
    grams = sorted(gram for gram, count in counts.items() if count >= args.fewest)
    if not grams:
        parser.error(f"{len(solutions)} successful completions hold no gram {args.fewest} times.")
    vectors = load_sentence_encoder(args.model, torch.device("cpu")).encode(
        grams, batch_size=256, normalize_embeddings=True, show_progress_bar=False
    )
    clusters = min(args.clusters, len(grams))
    _, labels = kmeans2(vectors.astype(np.float64), clusters, iter=50, minit="++", rng=args.seed, missing="warn")
    cluster_of = {gram: int(label) for gram, label in zip(grams, labels, strict=True)}
    chosen_clusters = frequent_clusters(solutions, cluster_of, args.share, args.most)
    if not chosen_clusters:
        parser.error(f"every cluster occurs in more than {args.most:.0%} of the solutions. Raise --most.")
    planning_grams = sorted(
        (gram for gram in grams if cluster_of[gram] in chosen_clusters), key=lambda gram: (-counts[gram], gram)
    )
    report = {
        "solutions": len(solutions),
        "grams_considered": len(grams),
        "clusters": clusters,
        "grams": planning_grams,
    }
    args.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        f"{len(solutions)} solutions, {len(grams)} grams in {clusters} clusters; {len(chosen_clusters)} clusters kept:"
    )
    for gram in planning_grams[:20]:
        print(f"{counts[gram] / len(solutions):6.1%}  {gram}")


if __name__ == "__main__":
    main()
