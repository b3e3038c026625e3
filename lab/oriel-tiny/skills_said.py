"""Questions about the conversation itself and its last messages, with answers."""
import banks


def said(d):
    """Needs at least one turn; the words of the last turns are in d.turns."""
    if not d.turns:
        return
    last = d.turns[-1]
    x = d.rng.random()
    user, answer = last["user"], last["assistant"]
    if x < 0.35 and len(user) < 90 and "\n" not in user:
        question = user.rstrip()[-1:] == "?"
        q = d.say(
            "(What did I (just|) (say|ask|write)|What was my last (question|message|sentence)|Repeat what I (just|) (said|wrote)|Say again what I (said|wrote)|What were my last words|What have I just (said|asked))?"
        )
        d.add(q, f'You {"asked" if question else "said"}: "{user}"', "said user", user)
    elif x < 0.65 and len(answer) < 120:
        q = d.say(
            "(What did you (just|) (say|answer)|(Say|Repeat) that again|Can you repeat that|Pardon|Come again|Please repeat your (last|) answer|What was your (last|) answer|I did not hear you|Once more, please)."
        )
        if q.split()[0] in ("What", "Can", "Pardon", "Come"):
            q = q[:-1] + "?"
        # The answer already has the style, so the styled copy is replaced by the original.
        d.add(q, answer, "said assistant", answer)
        d.turns[-1]["assistant"] = d.turns[-1]["gold"] = answer
    elif (
        x < 0.8
        and len(d.turns[0]["user"]) < 90
        and "\n" not in d.turns[0]["user"]
        and len(d.turns) > 1
        and d.chars < 2000
    ):
        first = d.turns[0]["user"]
        q = d.say(
            "(What was (my first question|the first thing I (said|wrote)|my first message)|How did (I|we) (begin|start) this (chat|conversation)|What did I say first|What did I (say|write) at the (start|beginning))?"
        )
        d.add(q, f'You {"asked" if first[-1] == "?" else "said"}: "{first}"', "said first", first)
    else:
        repeat(d)


def repeat(d):
    """Repeat a word two to five times."""
    w = banks.word(d.rng) if d.p(0.6) else d.c(banks.PLAIN + banks.ANIMALS)
    n = d.rng.randint(2, 5)
    times = ("two times", "three times", "four times", "five times")[n - 2]
    if n == 2 and d.p(0.5):
        times = "twice"
    q = d.say(f"([Please] (say|write|repeat) [the word] {w} {times}|(say|write) {times}: {w}).")
    d.add(q, ", ".join([w] * n) + ".", "repeat", ", ".join([w] * n), names=True)


def no_story(d):
    """Asked about a story that was not told."""
    q = d.say(
        "(Who was the hero of the story|How did the story end|What was the story about|What happened next in the story|Who was in the story|Where did the story happen)?"
    )
    d.add(
        q,
        d.c(
            "I have not told you a story yet.",
            "There was no story yet. Would you like one?",
            "You have not told me a story yet, and I have not told you one.",
        ),
        "no story",
        "story",
    )


def yes_no(d):
    a, b = d.rng.randint(1, 99), d.rng.randint(1, 99)
    while a == b:
        b = d.rng.randint(1, 99)
    bigger = d.p(0.5)
    ok = (a > b) == bigger
    d.add(
        d.c("Answer with yes or no: ", "Yes or no: ", "Answer only yes or no. ")
        + f"is {a} {'bigger' if bigger else 'smaller'} than {b}?",
        "Yes." if ok else "No.",
        "compare",
        "Yes" if ok else "No",
    )
