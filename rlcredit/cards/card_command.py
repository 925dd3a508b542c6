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
from rlcredit.cards.budget import CARD_BUDGETS
from rlcredit.cards.card import Card
from rlcredit.cards.card_options import USUAL_BUDGET, USUAL_ORGANISM, make_card_parser
from rlcredit.cards.card_view import CardView, render_comparison_text, write_card_page
from rlcredit.cards.comparability import refuse_incomparable_condition
from rlcredit.cards.condition import CardCondition, list_shipped_operators, resolve_card_condition
from rlcredit.cards.file_cards import FileCards
from rlcredit.cards.policy_cards import PolicyCards
from rlcredit.cards.ranking import add_shipped_rows
from rlcredit.cli.engine_text import build_engine
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.config.arguments import MAX_HELP_WIDTH
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.preflight.dry_run import REFUSAL_TYPES, explain_refusal
from rlcredit.supervision.graceful_stop import SignalHandler

_SIGNAL_HANDLER = SignalHandler()


def run_card_command(args: Sequence[str]) -> int:
    """Make cards; return 0 if all are made, 2 if refused, 3 if credit is not finite, 128 plus the signal if killed."""
    silence_libraries()
    sys.path.append(str(Path.cwd()))
    options = make_card_parser().parse_args(args)
    with _SIGNAL_HANDLER.handle_signals():
        try:
            return _build_requested_cards(options)
        except REFUSAL_TYPES as error:
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
    places = card_policies.select_card_policies(options.organism or [USUAL_ORGANISM])
    names = [*options.conditions, *(list_shipped_operators() if options.shipped else [])]
    if not names:
        raise ValueError("nothing to test is named. Name an operator, a condition or a Python file, or say --shipped.")
    conditions, base = [resolve_card_condition(name) for name in names], resolve_card_condition(options.baseline)
    _refuse_namesakes([base, *conditions])
    if options.rollout is not None:
        return _build_rollout_cards(options, conditions, base)
    budget = CARD_BUDGETS[options.budget or USUAL_BUDGET]
    if options.engine:
        build_engine(options.engine)  # refused before anything is measured
    builders = [
        PolicyCards(place, base, budget, options.out, options.slots, options.threads, options.engine)
        for place in places
    ]
    for builder in builders:
        for condition in conditions:
            refuse_incomparable_condition(condition, base, builder.organism.files, budget)
    cards_by_name: dict[str, list[Card]] = {condition.name: [] for condition in conditions}
    for builder in builders:
        for condition in conditions:
            cards_by_name[condition.name].append(builder.make_card(condition))
    for cards in cards_by_name.values():
        page = write_card_page(CardView(cards), options.out, options.mlflow, options.experiment)
        for card in cards:
            print(f"{card.name} on {card.organism}: {card.verdict}. {card.sentence}")
        print(page)
    new_cards = [card for cards in cards_by_name.values() for card in cards]
    rows = add_shipped_rows([*_select_comparable_cards(new_cards, Card.read_all(options.out)), *new_cards])
    if len({row["condition"] for row in rows}) > 1:
        print(leaderboard.write_leaderboard(rows, options.out, own_names=() if options.shipped else cards_by_name))
    return FINISHED


def _refuse_unfit_options(options: argparse.Namespace) -> None:
    """Refuse options that say nothing about a batch from a file, and those that say nothing without one."""
    unfit = ("budget", "slots", "organism", "shipped", "engine")
    if options.rollout is None:
        unfit = ("tokenizer", "model", "adapter", "temperature")
    for name in unfit:
        if vars(options)[name] not in (None, False):
            reason = (
                "does not go with a batch from a file. Leave it out beside --rollout."
                if options.rollout is not None
                else "is for a batch from a file. Name that with --rollout, or use --organism instead."
            )
            raise ValueError(f"--{name}: {reason}")
    if options.temperature is not None and not (options.model or options.adapter):
        raise ValueError("--temperature: is that of the policy's log-probabilities. Name the policy with --model.")


def _build_rollout_cards(options: argparse.Namespace, conditions: Sequence[CardCondition], base: CardCondition) -> int:
    """Make the cards of one batch from a file."""
    torch.set_num_threads(options.threads)
    builder = FileCards(
        options.rollout, base, options.tokenizer, options.model, options.adapter, options.temperature or 1.0
    )
    cards = [builder.make_card(condition) for condition in conditions]
    columns = min(shutil.get_terminal_size((100, 24)).columns, MAX_HELP_WIDTH)
    for card in cards:
        card.write(options.out / card.organism / card.budget / card.folder_stem / "card.json")
        view = CardView([card], cards)
        page = write_card_page(view, options.out, options.mlflow, options.experiment)
        lines = view.render_text(columns) if len(cards) == 1 else ()
        print(*lines, *([""] if len(cards) == 1 else []), page, sep="\n")
    if len(cards) > 1:
        print("", render_comparison_text(cards), sep="\n")
    return FINISHED


def _select_comparable_cards(new_cards: Sequence[Card], stored_cards: Sequence[Card]) -> list[Card]:
    """Return the earlier cards with the same baseline and budget, on test policies that have not changed."""
    organisms = {card.organism: card.grounds[0] for card in new_cards}
    comparable = (card for card in stored_cards if card.comparison_key == new_cards[0].comparison_key)
    return [card for card in comparable if organisms.get(card.organism, card.grounds[0]) == card.grounds[0]]


def _refuse_namesakes(conditions: Sequence[CardCondition]) -> None:
    """Refuse different conditions of one name, since folders and runs are named after them."""
    by_name = {condition.name: condition for condition in reversed(conditions)}
    for condition in conditions:
        if condition.content != (namesake := by_name[condition.name]).content:
            origins = f"{shorten_name(namesake.origin)} and {shorten_name(condition.origin)}"
            raise ValueError(f"{origins} are different conditions, both called {condition.name}. Rename one.")
