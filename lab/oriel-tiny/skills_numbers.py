"""Sums, differences, times tables, comparing, counting: digits and number words.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
from banks import NUMBER, join
from facts import cap

TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def spoken(n):
    """5 -> five, 42 -> forty-two, 100 -> one hundred; up to 199."""
    if n <= 20:
        return NUMBER[n]
    if n < 100:
        return TENS[n // 10] + ("-" + NUMBER[n % 10] if n % 10 else "")
    return "one hundred" + (" and " + spoken(n % 100) if n % 100 else "")


def operands(d, op):
    """Held out: a tenth of the pairs of numbers, whichever stands first; products all occur."""

    def pick():
        x = d.rng.random()
        if op == "+":
            a = d.rng.randint(0, 100) if x < 0.8 else d.rng.randint(0, 20)
            b = d.rng.randint(0, 100 - a) if x < 0.85 else d.rng.randint(0, 99)
            if d.p(0.5):
                a, b = b, a
            if d.late and d.p(0.15) and a % 10 and a < 95:  # a sum that ends in zero
                b = 10 * d.rng.randint(a // 10 + 1, 10) - a
            return f"{min(a, b)}+{max(a, b)}", (a, b)
        a = d.rng.randint(1, 100)
        b = d.rng.randint(0, a)
        return f"{a}-{b}", (a, b)

    if op == "x":
        return d.rng.randint(1, 12) if d.p(0.95) else 0, d.rng.randint(1, 12)
    return d.draw(pick)


# {a}, {b}: the numbers; used with digits and with number words.
ASK = {
    "+": [
        "(what is|how much is|calculate|compute|solve|work out|what do you get for|can you tell me what is|tell me|give me|what does|) {a} (plus|+|and) {b}",
        "{a} (+|plus) {b}",
        "{a} + {b} =",
        "{a}+{b}",
        "{a}+{b}=",
        "(what is|tell me|give me|find|calculate) the sum of {a} and {b}",
        "add {a} and {b}",
        "add {a} to {b}",
        "add {b} to {a}",
        "(what is|how much is) {b} added to {a}",
        "(if you|if I) add {a} and {b}, what do you get",
        "{a} plus {b} (is|equals|makes) what",
        "what does {a} plus {b} (make|equal|give)",
        "(what is|how much is) {a} + {b}",
        "(what is|what's) {a} plus {b}",
        "how much are {a} and {b} together",
        "what number is {a} plus {b}",
        "sum: {a} + {b}",
        "do you know {a} plus {b}",
    ],
    "-": [
        "(what is|how much is|calculate|compute|solve|work out|what do you get for|tell me|give me|) {a} (minus|-|less|take away) {b}",
        "{a} (-|minus) {b}",
        "{a} - {b} =",
        "{a}-{b}",
        "{a}-{b}=",
        "(what is|tell me|find) the difference (between|of) {a} and {b}",
        "subtract {b} from {a}",
        "take {b} (away from|from) {a}",
        "take {b} from {a}",
        "what does {a} minus {b} (make|equal|give)",
        "if you take {b} from {a}, what is left",
        "(what is|how much is) {a} - {b}",
        "(what is|what's) {a} minus {b}",
        "{a} minus {b} (is|equals|makes) what",
        "how much is left when {b} is taken from {a}",
        "do you know {a} minus {b}",
    ],
    "x": [
        "(what is|how much is|calculate|compute|solve|work out|what do you get for|tell me|give me|) {a} (times|x|*|multiplied by) {b}",
        "{a} (x|*|times) {b}",
        "{a} x {b} =",
        "{a} * {b} =",
        "{a}*{b}",
        "{a}x{b}",
        "(what is|tell me|find) the product of {a} and {b}",
        "multiply {a} (by|and|with) {b}",
        "what does {a} times {b} (make|equal|give)",
        "(what is|how much is) {a} x {b}",
        "(what is|what's) {a} times {b}",
        "{a} times {b} (is|equals|makes) what",
        "how much are {a} times {b}",
        "what number is {a} times {b}",
        "do you know {a} times {b}",
        "what is {a} multiplied by {b}",
    ],
}
# For the last stage: {n} has {a} {t}, in other sentences than "get ... more".
LATE_PROBLEMS = {
    "+": [
        "{n} {have} {a} {t} (and|, then {n}) (find{s}|buy{s}|pick{s}|receive{s}|collect{s}|win{s}|make{s}) (another {b}|{b} more). {how} (in all|altogether|then|after that)?",
        "{n} {have} {a} {t} and (a friend|somebody|mum) brings {b} more. How many {t} (are there|is that|does that make)?",
        "{n} {have} {a} {t} and get{s} {b} more (from a friend|as a present|at the shop). {how} (in all|altogether|after that)?",
        "{n} get{s} {a} {t} [today] and {b} more (tomorrow|later). How many {t} is that (together|in all)?",
        "(There are|I see|I count) {a} {t} (on the table|in the box) and {b} more (on the floor|in the bag). How many {t} are there (together|in all)?",
    ],
    "-": [
        "{n} {have} {a} {t} and (sell{s}|use{s}|break{s}|drop{s}|hide{s}) {b} [of them]. How many {t} (remain|are left|are still there)?",
        "{n} {have} {a} {t} and give{s} {b} (to a friend|to mum|back). {how} (left|still)?",
        "(Of|From) {a} {t} {b} (are gone|were sold|fell down|are broken). How many {t} (remain|are left)?",
    ],
    "x": [
        "{n} {have} {a} (boxes|baskets|bowls|packs) (of|with) {b} {t} [each]. How many {t} (is that|are there) [(in all|altogether)]?",
        "(There are|I see) {a} rows of {b} {t}. How many {t} is that [altogether]?",
        "{a} (baskets|bowls|plates), {b} {t} (in|on) each: how many {t} [in all]?",
    ],
}


def late_problem(d, op, a, b):
    n, t = d.c(banks.SHE + banks.HE + ["I", "I", "I"]), d.c(COUNTED)
    i = n == "I"
    text = d.say(d.c(LATE_PROBLEMS[op]))
    for key, word in (
        ("{how}", "How many {t} do I have" if i else "How many {t} does {n} have"),
        ("{n}", n),
        ("{have}", "have" if i else "has"),
        ("{s}", "" if i else "s"),
        ("{t}", t),
        ("{a}", str(a)),
        ("{b}", str(b)),
    ):
        text = text.replace(key, word)
    return text, t


NAME = {"+": "addition", "-": "subtraction", "x": "times table"}
SIGN = {"+": "plus", "-": "minus", "x": "times"}
COUNTED = "apples coins marbles books cookies flowers stamps eggs pencils shells stones cards balls cups tickets nuts".split()


def word_problem(d, op, a, b):
    t = d.c(COUNTED)
    n = d.c(banks.SHE + banks.HE + ["I"]) if d.p(0.6) else banks.first_name(d.rng)
    have, get, give, were = (
        ("have", "get", "give away", "do I")
        if n == "I"
        else ("has", "gets", "gives away", "does " + n)
    )
    q = d.c(
        {
            "+": [
                f"{n} {have} {a} {t} and {get} {b} more. How many {t} are there now?",
                f"{n} {have} {a} {t}. Then {n} {get} {b} more. How many {t} {were} have now?",
                f"There are {a} {t} in one box and {b} {t} in another box. How many {t} are there in all?",
                f"{n} {have} {a} {t} and finds {b} more. How many is that?"
                if n != "I"
                else f"I have {a} {t} and find {b} more. How many is that?",
            ],
            "-": [
                f"{n} {have} {a} {t} and {give} {b}. How many {t} are left?",
                f"There are {a} {t}. {b} are taken away. How many are left?",
                f"{n} {have} {a} {t} and loses {b}. How many are left?"
                if n != "I"
                else f"I have {a} {t} and lose {b}. How many are left?",
            ],
            "x": [
                f"There are {a} boxes with {b} {t} each. How many {t} are there?",
                f"{a} bags hold {b} {t} each. How many {t} is that?",
                f"Each of {a} children has {b} {t}. How many {t} are there?",
            ],
        }[op]
    )
    return q, t


def arithmetic(d, ops=("+", "+", "+", "-", "-", "x", "x")):
    op = d.c(ops)
    a, b = operands(d, op)
    r = {"+": a + b, "-": a - b, "x": a * b}[op]
    x = d.rng.random()
    if x < (0.25 if d.late else 0.14):
        q, t = (late_problem if d.late else word_problem)(d, op, a, b)
        answers = [f"{a} {SIGN[op]} {b} is {r}.", f"{a} {SIGN[op]} {b} is {r}, so there are {r} {t}."]
        if not d.late:
            answers.insert(1, f"There are {r} {t}.")
        d.add(q, d.reply(answers, [f"{r}."]), NAME[op], r, names=True)
        return
    if x < 0.17 and op == "+":
        d.add(f"Which number plus {b} is {r}?", f"{a} plus {b} is {r}.", NAME[op], a)
        return
    words_ = x > 0.86 and a <= 100 and b <= 100
    q = (
        d.say(d.c(ASK[op]))
        .replace("{a}", spoken(a) if words_ else str(a))
        .replace("{b}", spoken(b) if words_ else str(b))
    )
    if q[-1] != "=":
        q += d.c("?", "?", "?", ".") if q[0].isalpha() else d.c("?", "", " = ?", "")
    q = q[0].upper() + q[1:]
    if d.p(0.25):
        q = (
            d.c(
                "And ",
                "Then ",
                "Please: ",
                "Now ",
                "Solve this: ",
                "Quick, ",
                "Question: ",
                "OK, ",
                "A sum: ",
                "I have a sum for you: ",
                "Help me: ",
            )
            + q[0].lower()
            + q[1:]
        )
    d.add(
        q,
        d.reply(
            [f"{a} {SIGN[op]} {b} is {r}."] * 4 + [f"{a} {op} {b} = {r}."],
            [f"{r}.", f"{a} {SIGN[op]} {b} is {r}."],
        ),
        NAME[op],
        r,
    )


def check_sum(d):
    op = d.c("+", "-", "x")
    a, b = operands(d, op)
    r = {"+": a + b, "-": a - b, "x": a * b}[op]
    ok = d.p(0.5)
    w = r if ok else max(0, r + d.c(-10, -2, -1, 1, 2, 10, 20))
    ok = w == r
    said = f"{a} {SIGN[op]} {b} is {r}. " + ("Yes, that is right." if ok else f"No, it is not {w}.")
    d.add(
        d.c(
            f"Is {a} {SIGN[op]} {b} {w}?",
            f"Is {a} {op} {b} = {w}?",
            f"{a} {SIGN[op]} {b} is {w}, right?",
            f"Is it true that {a} {SIGN[op]} {b} is {w}?",
        ),
        said if d.counts_first else f"{'Yes' if ok else 'No'}, {a} {SIGN[op]} {b} is {r}.",
        "check sum",
        "Yes" if ok else "No",
    )


def times_row(d):
    a = d.rng.randint(1, 12)
    n = d.rng.randint(4, 10)
    r = ", ".join(str(a * i) for i in range(1, n + 1))
    d.add(
        d.c(
            f"Say the first {n} numbers of the {a} times table.",
            f"Count in steps of {a} from {a} to {a * n}.",
            f"Give me the {a} times table up to {a * n}.",
        ),
        r + ".",
        "counting",
        r,
    )


def compare(d):
    a, b = d.draw(
        lambda: (lambda a, b: (f"cmp{min(a, b)}|{max(a, b)}", (a, b)))(
            d.rng.randint(0, 99), d.rng.randint(0, 99)
        )
    )
    if a == b:
        b = a + 1
    hi, lo = max(a, b), min(a, b)
    if d.p(0.6):
        big = d.p(0.6)
        r = hi if big else lo
        wd = (
            d.c("bigger", "larger", "greater", "more", "higher")
            if big
            else d.c("smaller", "less", "lower")
        )
        d.add(
            d.c(
                f"Which is {wd}, {a} or {b}?",
                f"What is {wd}: {a} or {b}?",
                f"Which number is {wd}, {a} or {b}?",
                f"{a} or {b}: which is {wd}?",
                f"Is {a} or {b} {wd}?",
            ),
            d.reply([f"{r} is {wd} than {lo if big else hi}.", f"{r} is {wd}."], [f"{r}."]),
            "compare",
            r,
        )
    else:
        big = d.p(0.5)
        ok = (a > b) == big
        wd = d.c("bigger", "larger", "greater", "more") if big else d.c("smaller", "less")
        d.add(
            f"Is {a} {wd} than {b}?",
            ("Yes, " if ok else "No, ")
            + (
                f"{a} is {wd} than {b}."
                if ok
                else f"{a} is {'smaller' if big else 'bigger'} than {b}."
            ),
            "compare",
            "Yes" if ok else "No",
        )


def sequence(d, part=(0.0, 1.0)):
    x = d.rng.uniform(*part)
    if x < 0.25:
        s, st = d.rng.randint(0, 60), d.c(1, 2, 2, 3, 4, 5, 10, -1, -2, -5)
        s = s + 50 if st < 0 else s
        n = [s + st * i for i in range(d.rng.randint(3, 5))]
        r = n[-1] + st
        d.add(
            d.c(
                "What comes next: {}?",
                "Which number comes next? {}",
                "{}, what is next?",
                "Continue: {}.",
                "What is the next number: {}?",
                "Find the next number: {}",
            ).format(", ".join(map(str, n))),
            d.reply([f"The next number is {r}.", f"{r} comes next."], [f"{r}."]),
            "sequence",
            r,
        )
    elif x < 0.5:
        n = d.rng.randint(3, 12)
        up = d.p(0.5)
        a, n = d.draw(
            lambda: (lambda a: (f"count{up}{a}|{n}", (a, n)))(d.rng.randint(0 if up else n, 90))
        )
        r = list(range(a, a + n)) if up else list(range(a, a - n, -1))
        way = "" if up else d.c("", " down", " backwards")
        d.add(
            d.c(
                f"Count{way} from {r[0]} to {r[-1]}.",
                f"Please count{way} from {r[0]} to {r[-1]}.",
                f"Can you count{way} from {r[0]} to {r[-1]}?",
                f"Count {r[0]} to {r[-1]}.",
                f"Say the numbers from {r[0]} to {r[-1]}.",
            ),
            ", ".join(map(str, r)) + ".",
            "counting",
            ", ".join(map(str, r)),
        )
    elif x < 0.6:
        a = d.rng.randint(1, 99)
        up = d.p(0.5)
        r = a + 1 if up else a - 1
        d.add(
            d.c(
                f"Which number comes {'after' if up else 'before'} {a}?",
                f"What comes {'after' if up else 'before'} {a}?",
                f"What number is {'after' if up else 'before'} {a}?",
            ),
            d.reply([f"{r} comes {'after' if up else 'before'} {a}."], [f"{r}."]),
            "sequence",
            r,
        )
    elif x < 0.78:
        seq, kind = d.c(
            (banks.DAYS, "day"),
            (banks.DAYS, "day"),
            (banks.MONTHS, "month"),
            (banks.MONTHS, "month"),
            (banks.SEASONS, "season"),
        )
        i = d.rng.randrange(len(seq))
        up = d.p(0.5)
        r = seq[(i + (1 if up else -1)) % len(seq)]
        w = "after" if up else "before"
        d.add(
            d.c(
                f"Which {kind} comes {w} {seq[i]}?",
                f"What {kind} is {w} {seq[i]}?",
                f"What comes {w} {seq[i]}?",
                f"Which {kind} is {w} {seq[i]}?",
                f"What {kind} comes {'next after' if up else 'right before'} {seq[i]}?",
            ),
            d.reply(
                [f"{cap(r)} comes {w} {seq[i]}.", f"The {kind} {w} {seq[i]} is {r}."],
                [cap(r) + "."],
            ),
            "order",
            cap(r),
        )
    elif x < 0.88:
        q, a, g = d.c(
            [
                ("How many days are in a week?", "There are seven days in a week.", "seven"),
                ("How many months are in a year?", "There are twelve months in a year.", "twelve"),
                ("How many hours are in a day?", "There are 24 hours in a day.", "24"),
                ("How many minutes are in an hour?", "There are 60 minutes in an hour.", "60"),
                ("Name the days of the week.", join(banks.DAYS) + ".", "Sunday"),
                ("Name the months of the year.", join(banks.MONTHS) + ".", "December"),
                ("Name the four seasons.", "Spring, summer, autumn and winter.", "winter"),
                ("How many seconds are in a minute?", "There are 60 seconds in a minute.", "60"),
                ("How many legs does a table have?", "Most tables have four legs.", "four"),
                ("How many fingers do I have?", "Most people have ten fingers.", "ten"),
                (
                    "Say the alphabet.",
                    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z.",
                    "X Y Z",
                ),
                ("How many days are in a year?", "There are 365 days in a year.", "365"),
            ]
        )
        d.add(q, a, "order", g)
    else:
        a = d.rng.randint(1, 99)
        e = a % 2 == 0
        d.add(
            d.c(
                f"Is {a} even or odd?",
                f"Is {a} odd or even?",
                f"Is {a} an even number?" if e else f"Is {a} an odd number?",
                f"{a}: even or odd?",
            ),
            f"{a} is {'even' if e else 'odd'}.",
            "even/odd",
            "even" if e else "odd",
        )


def sort_numbers(d):
    ns = d.rng.sample(range(1, 100), d.rng.randint(3, 5))
    m = d.c("big", "small", "sort", "sort")
    if m == "sort":
        r = ", ".join(map(str, sorted(ns)))
        d.add(
            d.c(
                "Sort these numbers: {}.",
                "Put these in order: {}.",
                "Sort: {}",
                "Put these numbers in order: {}.",
            ).format(", ".join(map(str, ns))),
            r + ".",
            "sort",
            r,
        )
    else:
        r = max(ns) if m == "big" else min(ns)
        w = d.c("biggest", "largest", "highest") if m == "big" else d.c("smallest", "lowest")
        d.add(
            d.c(
                f"What is the {w} number: {join(ns, 'or')}?",
                f"Which is the {w}: {join(ns, 'or')}?",
                f"Find the {w} number: {', '.join(map(str, ns))}.",
            ),
            d.reply([f"The {w} number is {r}."], [f"{r}."]),
            "max/min",
            r,
        )
