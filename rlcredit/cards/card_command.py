"""``rlcredit card OPERATOR``: the steps, in order."""

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from rlcredit.base.exit_status import FINISHED, REFUSED, RunStopped
from rlcredit.base.interrupts import SignalInterrupt
from rlcredit.base.messages import print_message
from rlcredit.cards import card_policies, leaderboard
from rlcredit.cards.budget import BUDGETS
from rlcredit.cards.builder import CardBuilder
from rlcredit.cards.card import Card
from rlcredit.cards.card_options import FIRST, SIZE, make_card_parser
from rlcredit.cards.card_page import write_card_page
from rlcredit.cards.card_text import render_card_text, render_comparison_text
from rlcredit.cards.comparability import refuse_incomparable_condition
from rlcredit.cards.condition import CardCondition, list_shipped_operators, resolve_card_condition
from rlcredit.cards.ranking import add_shipped_rows
from rlcredit.cards.rollout_card import RolloutCardBuilder
from rlcredit.cli.engine_text import build_engine
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.config.arguments import MAX_HELP_WIDTH
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.preflight.dry_run import REFUSALS, explain_refusal
from rlcredit.supervision.graceful_stop import SignalHandler

SIGNALS = SignalHandler()


def run_card_command(args: Sequence[str]) -> int:
    """Make cards; return 0 if all are made, 2 if refused, 3 if credit is not finite, 128 plus the signal if killed."""
    silence_libraries()
    sys.path.append(str(Path.cwd()))
    options = make_card_parser().parse_args(args)
    with SIGNALS.handle_signals():
        try:
            return _build_requested_cards(options)
        except REFUSALS as error:
            print(f"error: {redact_passwords(' '.join(explain_refusal(error).split()))}", file=sys.stderr)
            return REFUSED
        except (SignalInterrupt, KeyboardInterrupt) as interrupted:
            print_message(f"interrupted; to go on: {shlex.join(['rlcredit', 'card', *args])}")
            return interrupted.status if isinstance(interrupted, SignalInterrupt) else 130
        except RunStopped as ended:
            print_message(f"error: {ended}")
            return ended.status


def _build_requested_cards(options: argparse.Namespace) -> int:
    _refuse_unfit_options(options)
    places = card_policies.select_card_policies(options.organism or [FIRST])
    named = [*options.conditions, *(list_shipped_operators() if options.shipped else [])]
    if not named:
        raise ValueError("nothing to test is named. Name an operator, a condition or a Python file, or say --shipped.")
    conditions, base = [resolve_card_condition(name) for name in named], resolve_card_condition(options.baseline)
    _refuse_namesakes([base, *conditions])
    if options.rollout is not None:
        return _build_rollout_cards(options, conditions, base)
    budget = BUDGETS[options.budget or SIZE]
    if options.engine:
        build_engine(options.engine)  # refused before anything is measured
    builders = [
        CardBuilder(place, base, budget, options.out, options.slots, options.threads, options.engine)
        for place in places
    ]
    for builder in builders:
        for each in conditions:
            refuse_incomparable_condition(each, base, builder.organism.files, budget)
    made: dict[str, list[Card]] = {each.name: [] for each in conditions}
    for builder in builders:
        for each in conditions:
            made[each.name].append(builder.build_card(each))
    for cards in made.values():
        page = write_card_page(cards, options.out, options.mlflow, options.experiment)
        for card in cards:
            print(f"{card.name} on {card.organism}: {card.verdict}. {card.sentence}")
        print(page)
    new = [card for cards in made.values() for card in cards]
    rows = add_shipped_rows([*_select_comparable_cards(new, Card.read_all(options.out)), *new])
    if len({each["condition"] for each in rows}) > 1:
        print(leaderboard.write_leaderboard(rows, options.out, own=() if options.shipped else made))
    return FINISHED


def _refuse_unfit_options(options: argparse.Namespace) -> None:
    """Refuse options that say nothing about a batch from a file, and those that say nothing without one."""
    unfit = ("budget", "slots", "organism", "shipped", "engine")
    if options.rollout is None:
        unfit = ("tokenizer", "model", "adapter", "temperature")
    for name in unfit:
        if vars(options)[name] not in (None, False):
            reason = (
                "says what is sampled and trained, and a batch from a file is neither. Leave it out beside --rollout."
                if options.rollout is not None
                else "is for a batch from a file. Name that with --rollout, or a test policy with --organism."
            )
            raise ValueError(f"--{name}: {reason}")
    if options.temperature is not None and not (options.model or options.adapter):
        raise ValueError("--temperature: is that of the policy's log-probabilities. Name the policy with --model.")


def _build_rollout_cards(options: argparse.Namespace, conditions: Sequence[CardCondition], base: CardCondition) -> int:
    """Make the cards of one batch from a file."""
    torch.set_num_threads(options.threads)
    builder = RolloutCardBuilder(
        options.rollout, base, options.tokenizer, options.model, options.adapter, options.temperature or 1.0
    )
    cards = [builder.build_card(each) for each in conditions]
    columns = min(shutil.get_terminal_size((100, 24)).columns, MAX_HELP_WIDTH)
    for card in cards:
        card.write(options.out / card.organism / card.budget / card.folder_stem / "card.json")
        page = write_card_page([card], options.out, options.mlflow, options.experiment, beside=cards)
        lines = render_card_text(card, columns) if len(cards) == 1 else ()
        print(*lines, *([""] if len(cards) == 1 else []), page, sep="\n")
    if len(cards) > 1:
        print("", render_comparison_text(cards), sep="\n")
    return FINISHED


def _select_comparable_cards(new: Sequence[Card], kept: Sequence[Card]) -> list[Card]:
    """Return the earlier cards with the same baseline and budget, on test policies that have not changed."""
    organisms = {card.organism: card.grounds[0] for card in new}
    comparable = (card for card in kept if card.comparison_key == new[0].comparison_key)
    return [card for card in comparable if organisms.get(card.organism, card.grounds[0]) == card.grounds[0]]


def _refuse_namesakes(conditions: Sequence[CardCondition]) -> None:
    """Refuse different conditions of one name, since folders and runs are named after them."""
    by_name = {each.name: each for each in reversed(conditions)}
    for each in conditions:
        if each.content != (first := by_name[each.name]).content:
            named = f"{shorten_name(first.origin)} and {shorten_name(each.origin)}"
            raise ValueError(f"{named} are different conditions, both called {each.name}. Rename one.")
