"""What is being tried, on how many members, and what it found."""

from __future__ import annotations

from ldfi.dashboards.grafana.board import Rows, board
from ldfi.dashboards.grafana.panels import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SHARE,
    Query,
    lines,
    number,
    states,
)

_OF_BUDGET = "max(ldfi_members_charged{{window='{0}'}}) / max(ldfi_members_limit{{window='{0}'}})"
_NEARLY_SPENT = [(0.8, ORANGE), (1.0, RED)]
_HURTS = "open|acknowledged|regressed"


def _trips(metric: str) -> str:
    """Count how often a switch went off and on again within the hour before: two changes each."""
    return f"max(ceil(changes({metric}[1h]) / 2))"


NOW = [
    number(
        "Armed now",
        "Experiments whose rules the edges follow now. 0 is the quiet state.",
        "max(ldfi_rules_armed)",
        levels=[(1, BLUE)],
    ),
    number(
        "Everything halted",
        "Somebody has halted all experiments; they stay halted until somebody resumes.",
        "max(ldfi_halted)",
        words={0: ("no", GREEN), 1: ("HALTED", RED)},
    ),
    number(
        "Guardrails",
        "A guardrail that does not hold disarms everything at once and lets nothing new start.",
        "max(ldfi_guardrail_breached)",
        words={0: ("hold", GREEN), 1: ("BREACHED", RED)},
    ),
    number(
        "Budget of the hour",
        "Share used of the members that may be exposed in any hour.",
        _OF_BUDGET.format("hour"),
        unit=SHARE,
        levels=_NEARLY_SPENT,
    ),
    number(
        "Budget of the day",
        "Share used of the members that may be exposed in any day.",
        _OF_BUDGET.format("day"),
        unit=SHARE,
        levels=_NEARLY_SPENT,
    ),
    number(
        "Weaknesses that hurt",
        "Findings that are open, acknowledged or regressed: not fixed yet.",
        f"sum(max by (state) (ldfi_findings{{state=~'{_HURTS}'}}))",
        levels=[(1, ORANGE)],
    ),
    number(
        "Regressed",
        "Weaknesses that were fixed and hurt again.",
        "max(ldfi_findings{state='regressed'})",
        levels=[(1, RED)],
    ),
    number(
        "Campaigns running",
        "Campaigns that look for something to try.",
        "max(ldfi_campaigns{state='running'})",
        levels=[(1, BLUE)],
    ),
]

TRIED = [
    lines(
        "Experiments that are not over",
        "In armed, observing and settling faults may be injected. Many that wait: something "
        "forbids them to start, see the campaign's page.",
        Query("sum by (state) (ldfi_experiments_live)", "{{state}}"),
        colours={"armed": ORANGE, "observing": RED, "settling": BLUE},
        stacked=True,
        width=12,
    ),
    states(
        "What holds experiments back",
        "While any of these is on nothing new is armed.",
        Query("max(ldfi_halted)", "halted"),
        Query("max(ldfi_guardrail_breached)", "guardrail breached"),
        Query("max(ldfi_maintenance_windows > bool 0)", "maintenance window"),
        words={0: ("no", GREEN), 1: ("yes", RED)},
    ),
    lines(
        "Members exposed within an hour, against the budget",
        "Devices charged to the budget of the last hour. It counts what may have been exposed, "
        "so after a crash it is above what was.",
        Query("max(ldfi_members_charged{window='hour'})", "charged"),
        Query("max(ldfi_members_limit{window='hour'})", "budget"),
        colours={"charged": BLUE, "budget": RED},
    ),
    lines(
        "Members exposed within a day, against the budget",
        "The same over a day.",
        Query("max(ldfi_members_charged{window='day'})", "charged"),
        Query("max(ldfi_members_limit{window='day'})", "budget"),
        colours={"charged": BLUE, "budget": RED},
    ),
    lines(
        "Members hurt within an hour",
        "Treated devices that reported a failure: the price of what was found.",
        Query("max(increase(ldfi_members_hurt_total[1h]))", "hurt"),
        colours={"hurt": RED},
    ),
]

FOUND = [
    lines(
        "Verdicts within an hour",
        "none: called off before there was a verdict. Many inconclusive ones: too little traffic, "
        "or faults that do not fire.",
        Query(
            "sum by (verdict) (max by (purpose, verdict) "
            "(increase(ldfi_experiments_ended_total[1h])))",
            "{{verdict}}",
        ),
        colours={"harmful": RED, "tolerated": GREEN, "inconclusive": GREY, "none": BLUE},
        stacked=True,
    ),
    lines(
        "Findings",
        "By state. Suspected ones wait for their confirmation.",
        Query("max by (state) (ldfi_findings)", "{{state}}"),
        colours={"open": RED, "regressed": "dark-red", "acknowledged": ORANGE, "fixed": GREEN},
    ),
    lines(
        "Campaigns",
        "All there ever were, by state.",
        Query("max by (state) (ldfi_campaigns)", "{{state}}"),
    ),
    lines(
        "Guardrail trips and halts within an hour",
        "How often a guardrail stopped everything, and how often somebody did.",
        Query(_trips("ldfi_guardrail_breached"), "guardrail trips"),
        Query(_trips("ldfi_halted"), "halts"),
        colours={"guardrail trips": ORANGE, "halts": RED},
    ),
    lines(
        "Request classes",
        "Unfit ones are not explored: their requests do not behave alike.",
        Query("max by (fit) (ldfi_classes{fit='yes'})", "may be explored"),
        Query("max by (fit) (ldfi_classes{fit='no'})", "unfit"),
        colours={"may be explored": GREEN, "unfit": ORANGE},
        stacked=True,
    ),
    lines(
        "Notifications",
        "Once for each target that waits, or did not take it.",
        Query("max(ldfi_notifications_waiting)", "waiting"),
        Query("max(increase(ldfi_notifications_given_up_total[1h]))", "refused within an hour"),
        colours={"refused within an hour": RED},
    ),
]

ROWS: Rows = {"Now": NOW, "What is being tried": TRIED, "What came of it": FOUND}

DASHBOARD = board(
    "ldfi-experiments",
    "ldfi: experiments",
    "What is being tried, on how many members, and what it found.",
    "now-6h",
    ROWS,
)
