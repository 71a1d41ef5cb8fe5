"""What a promise costs: the price of other shares on the load so far, and a sentence about it."""

from __future__ import annotations

from foretide.model import Choice
from foretide.plan.promise.rehearsal import Rules
from foretide.plan.promise.terms import Terms
from foretide.wording import percent

SHARES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
GIVEN_UP = 2.0
"""Times the late events that were promised at most, from which on the rules have given up the
promise: a single window can be late by chance.
"""


def choices(rules: Rules, promised: float) -> tuple[Choice, ...]:
    """The promised share and a few others, each at the least that a rule cost which kept it; shares
    that no rule kept are left out.
    """
    costs = ((s, rules.cost(s)) for s in sorted({*SHARES, promised}))
    return tuple(Choice(share, cost) for share, cost in costs if cost is not None)


def in_words(rules: Rules, terms: Terms) -> str:
    """What the promise costs, and what the next lower and higher ones would; or why it is given up.

    >>> from numpy import array, empty
    >>> from foretide.plan.foretide import Foretide
    >>> frontier = array([0.99, 0.98]), array([1.5, 1.2])
    >>> print(in_words(Rules(empty(0), (), 0.99, frontier), Foretide().terms))
    99 % within 5 s would have cost 1.50 replicas for each busy one so far, starts and stops \
included; 98 % 20 % less
    """
    promise, cost = f"{percent(terms.share)} within {terms.target_s:g} s", rules.cost(terms.share)
    about = f"the rules that decide kept {percent(round(rules.kept, 3))}"
    if cost is None:
        highest = percent(round(float(rules.frontier[0].max(initial=0.0)), 3))
        return f"no rule would have kept {promise} so far, {highest} at most; {about}"
    text = (
        f"{promise} would have cost {cost:.2f} replicas for each busy one so far, starts and stops "
        "included"
    )
    if 1.0 - rules.kept > GIVEN_UP * (1.0 - terms.share):
        return f"{text}, more than late events are worth (late_price {terms.late_price:g}): {about}"
    known = choices(rules, terms.share)
    lower = [c for c in known if c.share < terms.share][-1:]
    higher = [c for c in known if c.share > terms.share][:1]
    beside = (f"{percent(c.share)} {_beside(c.cost / cost)}" for c in lower + higher)
    return "; ".join([text, *beside])


def _beside(ratio: float) -> str:
    change = percent(round(abs(ratio - 1.0), 2))
    return "as much" if change == "0 %" else f"{change} {'more' if ratio > 1 else 'less'}"
