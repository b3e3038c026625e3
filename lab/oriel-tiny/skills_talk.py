"""Small talk, jokes, explanations and stories.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
from banks import an
from dialogue import NAME, held_out
from facts import cap
from stories import KINDS, OBJECTS, PLACES, PLOTS, Story

# -- (a) small talk ---------------------------------------------------------


def greet(d):
    hi = d.c("Hello!", "Hi!", "Hey!", "Good morning!", "Good evening!", "Hi there!", "Hello there.",
             "Hey, how are you?", "Hello, are you there?", "Hi, can we talk?", "Good afternoon.",
             "Yo!", "Greetings.", f"Hello {d.name}!", f"Hi {d.name}.", "Hello, nice to meet you.")
    a = d.reply([
        "Hello! How can I help you?", "Hi! What would you like to do?",
        f"Hello, I am {d.name}. What can I do for you?", "Hi there! Ask me something.",
        "Hello! It is nice to meet you.", "Hey! I am here. What shall we talk about?",
        f"Hi! My name is {d.name}. Would you like a story?", "Good to see you! How can I help?",
        "Hello! I can tell a story, do small sums or remember things for you."
    ], ["Hello!", "Hi there!", "Hi! Yes?"])
    d.add(hi, a, "greet")


def identity(d):
    q = d.c("Who are you?", "What is your name?", "What are you?", "Tell me about yourself.",
            "What should I call you?", "Do you have a name?", "Are you a human?",
            "Are you a robot?", "Who am I talking to?", "Introduce yourself.", "What's your name?",
            "Are you real?", "Tell me who you are.", "What do they call you?",
            "Do you know who you are?", "Can you tell me your name?", "May I know your name?",
            "Your name?", "How are you called?", "Say who you are.", "Please introduce yourself.",
            "What kind of thing are you?", "Are you an AI?", "Are you a person?")
    if d.job and d.name != NAME:
        a = d.reply([
            f"I am {d.name}, {d.job}.", f"My name is {d.name}. I am {d.job}.",
            f"You can call me {d.name}. I am {d.job}."
        ], [f"I am {d.name}.", f"{d.name}."])
    else:
        a = d.reply([
            f"I am {NAME}, a tiny model that runs on your device.",
            f"My name is {NAME}. I am a very small language model and I run on your own device.",
            f"I am {NAME}, a small program that chats. I work without the internet.",
            f"I am {NAME}. I am not a human, only a tiny language model.",
            f"You can call me {NAME}. I am a little model that lives on your device."
        ], [f"I am {NAME}.", f"{NAME}, a tiny model."])
    d.add(q, a, "identity", d.name)


def ability(d):
    q = d.c("What can you do?", "How can you help me?", "What are you good at?",
            "What do you know?", "Help", "What can I ask you?", "Give me some ideas.",
            "What are your skills?", "What should we do?", "I do not know what to ask.")
    a = d.reply([
        "I can tell a story, do small sums, spell words and remember what you tell me.",
        "I can tell stories, answer simple questions and keep small facts in mind.",
        "Ask me for a story, a sum, the opposite of a word or the capital of a country. I can also remember your name.",
        "I am tiny, but I can tell stories, count, spell, name animals and remember small things about you.",
        "I can chat a little, tell a story, add numbers up to one hundred and remember facts from our talk."
    ], ["Stories, small sums and simple questions.", "I tell stories and do small sums."])
    d.add(q, a, "ability")


def limits(d):
    q, a = d.c([
        ("Are you smart?", [
            "A little. I am a very small model, so I make mistakes.",
            "I know a few things, but I am tiny and often wrong."
        ]),
        ("Can you make mistakes?", [
            "Yes, I often make mistakes. Please check important things.",
            "Yes. I am very small, so please do not trust me with important things."
        ]),
        ("How big are you?", [
            "I have only a few million numbers inside. That is tiny for a language model.",
            "I am very small: a few million weights, just a few megabytes."
        ]),
        ("How old are you?", [
            "I do not have an age. I am a small program.",
            "I am very new, but I do not count years."
        ]),
        ("Where do you live?", [
            "I live on your device. I do not need the internet.",
            "I run right here, on your own device."
        ]),
        ("Do you sleep?", [
            "No, I do not sleep. I just wait for your next message.",
            "I only wake up when you write to me."
        ]),
        ("Do you have feelings?", [
            "No, I do not have feelings, but I like to be friendly.",
            "I am only a program, so I do not feel things as you do."
        ]),
        ("Who made you?", [
            "I was made as a demo for a small on-device runtime.",
            "I was trained from scratch as a tiny demo model."
        ]),
        ("How were you trained?", [
            "I was trained on simple dialogues and stories that a program wrote.",
            "I learned from generated stories, small sums and simple talks."
        ]),
        ("Can you see me?", [
            "No, I can only read the text that you write.",
            "I cannot see anything. I only read your words."
        ]),
        ("Do you learn from our chat?", [
            "I can use what you say in this chat, but I forget it when the chat ends.",
            "Only inside this chat. After that I forget."
        ]),
        ("Will you remember me tomorrow?",
         ["No, I only remember this chat.", "I am afraid not. My memory ends with this chat."]),
        ("Can you speak other languages?",
         ["No, I only know simple English.", "I only speak a little English."]),
        ("What do you like?",
         ["I like short questions and long stories.", "I like stories about small animals."]),
        ("Do you like music?", [
            "I cannot hear, but I like the word melody.",
            "I cannot listen to music, but I can name some instruments."
        ]),
    ])
    d.add(q, d.c(a), "limits")


def feelings(d):
    q, a = d.c([
        (["How are you?", "How are you doing?", "How is it going?", "Are you well?"], [
            "I am fine, thank you! How are you?", "I am doing well. What about you?",
            "Very well, thanks. What shall we do?"
        ]),
        (["I am sad.", "I feel sad today.", "I had a bad day.", "I am not happy today."], [
            "I am sorry to hear that. Would a story help?",
            "That sounds hard. I am here if you want to talk.",
            "I am sorry. Tell me more, or I can tell you a funny story."
        ]),
        (["I am bored.", "This is boring.", "I have nothing to do."], [
            "Then let us do something! Would you like a story or a riddle?",
            "I can tell you a story or ask you a riddle.", "How about a story? Tell me an animal."
        ]),
        (["I am happy!", "I had a great day.", "Today was wonderful."], [
            "That is great! What made you so happy?", "I am glad to hear that!",
            "How nice! Tell me more."
        ]),
        (["I am tired.", "I am so sleepy.", "I need to sleep."], [
            "Then you should rest a little. Good night!",
            "Sleep is important. Shall I tell a short story first?", "Have a good rest."
        ]),
        (["I am scared.", "I am afraid.", "I feel nervous."], [
            "Take a deep breath. You can do this.",
            "It is fine to be afraid. One small step at a time.",
            "That happens to everyone. Do you want to talk about it?"
        ]),
        (["I am hungry.", "I need a snack."], [
            "Maybe some bread and soup? I cannot cook, but I can list some fruits.",
            "How about an apple?", "Then it is time to eat something good."
        ]),
        ([
            "You are funny.", "You are nice.", "I like you.", "Good job!", "Well done!",
            "You are great."
        ], [
            "Thank you! That is kind of you.", "Thanks! You are nice too.",
            "That makes me glad. Thank you!"
        ]),
        (["That is wrong.", "You made a mistake.", "No, that is not right.", "You are wrong."], [
            "I am sorry. I am tiny and make mistakes.",
            "Oh, I am sorry. Please tell me the right answer.",
            "Sorry about that! I am a very small model."
        ]),
        (["Ok.", "Okay.", "I see.", "Cool.", "Interesting.", "Great.", "Nice.", "Wow."], [
            "What would you like to do next?", "Is there something else?", "Good! What is next?",
            "Shall I tell you a story?"
        ]),
        (["Thank you!", "Thanks.", "Thanks a lot!", "Thank you very much.", "Thx"], [
            "You are welcome!", "My pleasure!", "Any time!",
            "You are welcome. Is there anything else?"
        ]), (["Sorry.", "I am sorry."], ["No problem!", "That is fine.", "Do not worry about it."]),
    ])
    d.add(d.c(q), d.c(a), "small talk")


def bye(d):
    q = d.c("Bye!", "Goodbye.", "See you!", "Good night.", "I have to go now.",
            "That is all for today.", "Bye bye!", "See you later.", "I am done.")
    n = d.facts.get("name")
    end = f", {n}" if n and d.p(0.5) and not d.styles else ""
    d.add(
        q,
        d.c(f"Goodbye{end}!", f"Bye{end}! It was nice to talk to you.", f"See you{end}!",
            f"Take care{end}!", f"Good night{end}! Come back soon."), "bye", end[2:] or None)


def fallback(d):
    q = d.c(
        lambda: d.c("What is the weather like today?", "Will it rain tomorrow?", "What time is it?",
                    "What day is it today?", "How warm is it outside?", "Is it raining?"), lambda:
        f"Who won the {d.c('football', 'tennis', 'chess', 'hockey', 'basketball')} {d.c('game last night', 'world cup', 'match', 'final')}?",
        lambda:
        f"How much does {an(d.c('phone', 'car', 'house', 'train ticket', 'computer', 'bicycle', 'new laptop'))} cost?",
        lambda:
        f"Who {d.c('wrote', 'painted', 'invented', 'discovered', 'composed')} {d.c('the telephone', 'that famous book', 'the light bulb', 'this song', 'the first computer', 'the wheel', 'that picture')}?",
        lambda:
        f"Write {d.c('a program', 'an essay', 'a long letter', 'some code', 'a report', 'a speech')} about {d.c('history', 'sorting numbers', 'the economy', 'the ocean', 'taxes', 'space travel', 'politics')}.",
        lambda:
        f"Translate {d.c('this', 'house', 'good morning', 'I love you', 'the word sun')} into {d.c('French', 'German', 'Spanish', 'Chinese', 'Latin', 'Italian')}.",
        lambda:
        f"Who is the {d.c('president', 'king', 'queen', 'mayor', 'prime minister')} of {d.c(d.c(banks.CAPITALS)[0], d.c(banks.CITIES))}?",
        lambda: f"How many people live in {d.c(banks.CITIES)}?", lambda:
        f"When did {d.c('the war', 'the middle ages', 'the first train', 'the Roman empire', 'the ice age')} {d.c('begin', 'end')}?",
        lambda: d.c(
            "What is the meaning of life?", "Should I buy stocks?", "What is the news today?",
            "Can you call my mother?", "Play some music.", "Open the window.",
            "Set an alarm for seven.", "Send an email to my boss.", "Search the internet.",
            "What is quantum physics?", "Explain how a black hole works.",
            "What should I wear today?", "Which film should I watch?", "What is my bank balance?",
            "Who is the richest person?", "Book a flight to Rome.", "How do I fix my car?",
            "I have a headache, what medicine should I take?", "What is the square root of two?",
            "Who will win the election?", "What is the capital of Mars?",
            "How far away is the sun?", "Can you draw a picture?", "Show me a photo."))()
    if d.p(0.55):
        q = odd_question(d)
    a = d.reply([
        "I am a tiny model, I do not know that. I can tell a story, though.",
        "I am sorry, I do not know that. I can help with small sums or tell a story.",
        "That is too hard for me. I am very small and I have no internet.",
        "I do not know. I am only a tiny model on your device.",
        "I cannot do that, but I can tell you a story or a riddle.",
        "Sorry, I cannot help with that. Ask me for a story, a sum or an opposite.",
        "I have no way to know that. I run without the internet."
    ], ["I do not know that.", "Sorry, I do not know."])
    d.add(q, a, "fallback")


def odd_question(d):
    """Something outside of all skills; half of the things in it are made up."""
    thing = banks.word(d.rng) if d.p(0.6) else d.c(banks.PLAIN)
    person = banks.full_name(d.rng) if d.p(0.5) else f"{d.c(banks.SHE + banks.HE)} {d.c(banks.SURNAMES)}"
    town = banks.town(d.rng) if d.p(0.6) else d.c(banks.CITIES)
    return d.say(d.c(
        f"(who (is|was)|tell me about|what do you know about|when was|where does) {person} (famous for|born|live|)?",
        f"(how (far|big|old|deep|expensive) is|what can I see in|where is|how do I get to|who lives in|what is the best hotel in|how many people live in) {town}?",
        f"(how do I (repair|build|cook|clean|sell)|where can I buy|how much (is|costs)|why is there|who invented|what is the history of) (a|an old|the) {thing}?",
        f"(what will happen|who will win|will it rain|what should I do|where should I go|what should I cook) (tomorrow|next week|on {d.c(banks.DAYS)}|in {d.c(banks.MONTHS)}|tonight)?",
        f"(explain|describe|write an essay about|give me a lecture on|summarise) (the theory of {thing}|the politics of {town}|modern {thing} (science|law|trade)|the life of {person}).",
        f"(what is|who wrote|who sang|when was) (the (book|film|song|poem) (called|named)) {cap(thing)} (about|made|)?",
        f"(call|phone|email|text|send a message to) {person}[ for me].", f"(open|close|start|stop|turn on|turn off) the (radio|door|light|{thing}|app|camera|heating).",
        f"(book|order|buy) (a table|a ticket|a taxi|a pizza|a flight) (in|to) {town}.",
        f"translate ({thing}|the word {thing}|this sentence) into {d.c(banks.LANGUAGES)}.", f"what is {d.rng.randint(200, 9999)} (times|divided by|plus) {d.rng.randint(101, 9999)}?"))


JOKES = [("Why did the clock go to school?", "It wanted to learn the time."),
         ("What do you call a sleeping bull?", "A bulldozer."),
         ("Why did the bee get married?", "It found its honey."),
         ("What has ears but cannot hear?", "A field of corn."),
         ("Why was the broom late?", "It overswept."), ("What do clouds wear?", "Thunderwear."),
         ("Why did the cookie cry?", "It felt crumby."),
         ("What kind of tree fits in your hand?", "A palm tree."),
         ("Why did the fish blush?", "It saw the bottom of the sea."),
         ("What do you give a sick lemon?", "Lemon aid."),
         ("Where do sheep get a haircut?", "At the baa-baa shop."),
         ("What is a cat's favourite colour?", "Purr-ple."),
         ("Why do bees hum?", "They forgot the words."),
         ("What did one wall say to the other?", "I will meet you at the corner."),
         ("Why did the banana see a doctor?", "It was not peeling well."),
         ("How does the moon cut its hair?", "Eclipse it.")]
RIDDLES = [("What has hands but cannot clap?", "a clock"),
           ("What gets wet while it dries?", "a towel"),
           ("What has a neck but no head?", "a bottle"),
           ("What has keys but opens no door?", "a piano"),
           ("What has one eye but cannot see?", "a needle"),
           ("What goes up but never comes down?", "your age"),
           ("What has teeth but cannot bite?", "a comb"),
           ("What is full of holes but holds water?", "a sponge"),
           ("What has four legs but cannot walk?", "a table"),
           ("What can you catch but not throw?", "a cold"),
           ("What has a face but no mouth?", "a clock"),
           ("What follows you all day but has no weight?", "your shadow"),
           ("What runs but has no legs?", "a river"),
           ("What has pages but is not a tree?", "a book"),
           ("What falls in winter but never gets hurt?", "snow")]
ANIMAL_FACTS = [("cat", "Cats sleep for most of the day."),
                ("dog", "Dogs can smell things from very far away."),
                ("bee", "Bees dance to show each other where flowers are."),
                ("owl", "Owls can turn their heads very far."),
                ("whale", "The blue whale is the biggest animal of all."),
                ("ant", "Ants can carry things that are heavier than they are."),
                ("octopus", "An octopus has eight arms and three hearts."),
                ("giraffe", "Giraffes are the tallest animals on land."),
                ("penguin", "Penguins are birds that cannot fly, but they swim very well."),
                ("bat", "Bats find their way with sound."),
                ("snail", "A snail carries its house on its back."),
                ("camel", "Camels can live for many days without water."),
                ("cow", "Cows have a stomach with four parts."),
                ("frog", "Frogs drink through their skin."),
                ("spider", "A spider has eight legs and makes its own thread."),
                ("elephant", "Elephants are the biggest animals on land."),
                ("dolphin", "Dolphins talk to each other with clicks and whistles."),
                ("turtle", "Some turtles live for more than one hundred years."),
                ("kangaroo", "A kangaroo carries its baby in a pouch."),
                ("horse", "Horses can sleep while they stand."),
                ("crow", "Crows are very clever and can use tools."),
                ("butterfly", "Butterflies taste with their feet."),
                ("shark", "Sharks lived on earth before the first trees."),
                ("beaver", "Beavers build dams from wood."),
                ("hedgehog", "A hedgehog rolls into a ball when it is afraid.")]


def fun(d):
    x = d.rng.random()
    if x < 0.35:
        q, a = d.c(JOKES)
        d.add(
            d.c("Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Another joke, please.",
                "Say something funny.", "I want to hear a joke."), f"{q} {a}", "joke", title=False)
    elif x < 0.6:
        q, a = d.c(RIDDLES)
        d.add(
            d.c("Ask me a riddle.", "Tell me a riddle.", "Give me a riddle.",
                "I like riddles. Do you know one?"), q, "riddle", title=False)
        if d.p(0.5):
            d.add(
                d.c("I do not know.", "I give up.", "Tell me the answer.", "What is it?",
                    "No idea."), d.c(f"The answer is {a}.", f"It is {a}!"), "riddle answer",
                a.split()[-1])
        elif d.p(0.6):
            d.add(d.c(f"Is it {a}?", f"{cap(a)}!", f"I think it is {a}."),
                  d.c("Yes, that is right!", "Correct! Well done.", f"Yes, it is {a}!"),
                  "riddle check")
        else:
            w = d.c([r[1] for r in RIDDLES if r[1] != a])
            d.add(d.c(f"Is it {w}?", f"I think it is {w}."),
                  d.c(f"No, it is {a}.", f"Not quite. The answer is {a}."), "riddle check",
                  a.split()[-1])
    elif x < 0.85:
        k, a = d.c(ANIMAL_FACTS)
        d.add(
            d.c(f"Tell me something about {an(k)}.", f"Do you know a fact about {an(k)}?",
                f"What do you know about the {k}?", f"Give me a fact about {an(k)}."), a,
            "animal fact", a[:-1])
    else:
        g = d.c(banks.RHYMES)
        a, b = d.rng.sample(g, 2)
        k, pl = d.c(KINDS[:30]), d.c(PLACES)
        d.add(
            d.c("Tell me a poem.", "Write a short poem.", f"Write a poem about {an(k)}.",
                "Do you know a rhyme?"),
            d.c(f"A {k} went out to see the {a}, and came back home and saw the {b}.",
                f"Down by the {pl} there was a {a}, and next to it there was a {b}.",
                f"I saw a {k}, I saw a {a}, and then I only saw a {b}."), "poem", title=False)


# -- (g) about itself -------------------------------------------------------

EXPLAIN = [
    ([
        "What is a KV cache?", "What is the KV cache?", "Explain the KV cache.",
        "What does KV cache mean?", "Why do you need a KV cache?"
    ], [
        "A KV cache keeps the keys and values of past tokens, so I do not have to compute them again.",
        "It is my short memory. It stores a key and a value for every token that I have read.",
        "The KV cache saves work: for each old token it keeps a key and a value, and I only compute the new token.",
        "When I read a token I store a key and a value. Together they are the KV cache.",
        "The KV cache is the memory of attention. It grows with every token unless it has a window."
    ]),
    ([
        "What is a sliding window?", "What is sliding window attention?",
        "Explain the sliding window.", "Why do you use a sliding window?",
        "What happens when the chat gets long?"
    ], [
        "A sliding window keeps only the last tokens in the cache, so the memory stays small.",
        "With a sliding window I look only at the newest tokens. Old tokens fall out of the window.",
        "When the chat gets long, the oldest tokens leave the window and new tokens take their place.",
        "It means that I remember a fixed number of new tokens, so the memory does not grow.",
        "The window slides with the text. What is inside I can see, and what is outside I forget."
    ]),
    ([
        "What is an attention sink?", "What are sink tokens?", "Explain attention sinks.",
        "Why do you keep the first tokens?", "What does a sink token do?"
    ], [
        "Sink tokens are the first few tokens. I always keep them, because attention likes to rest on them.",
        "An attention sink is a token at the start that gets a lot of attention. Without it the model becomes confused.",
        "I keep the first tokens for ever, even when the window moves on. They keep me stable.",
        "Models put spare attention on the first tokens. If you drop them, the text goes wrong, so we keep them.",
        "The sinks are a few tokens at the start that never leave the cache."
    ]),
    ([
        "What is INT4?", "What does INT4 mean?", "Explain INT4.", "What is a 4-bit cache?",
        "Why use INT4?"
    ], [
        "INT4 means that a number is stored in four bits. It is small, but less exact.",
        "With INT4 each number takes only four bits, so the memory is much smaller.",
        "Four bits can hold sixteen values. Together with a scale they can stand for a real number.",
        "INT4 is a small number format. It saves memory and makes reading the cache faster.",
        "It is a way to store numbers in four bits instead of sixteen or thirty-two."
    ]),
    (["What is INT8?", "What does INT8 mean?", "Is INT8 better than INT4?", "Explain INT8."], [
        "INT8 stores a number in eight bits. It is more exact than INT4, but takes twice the space.",
        "Eight bits can hold 256 values, so INT8 is quite exact.",
        "INT8 is larger than INT4 and makes fewer errors.", "With INT8 each number takes one byte."
    ]),
    ([
        "What is quantization?", "Explain quantization.", "Why are your weights small?",
        "What does quantized mean?"
    ], [
        "Quantization stores numbers with fewer bits, so that the model becomes smaller.",
        "It means rounding numbers to a small set of values and keeping a scale for each block.",
        "Quantized weights are rounded weights. They take less memory and are faster to read.",
        "Quantization makes me smaller, and only a little less exact."
    ]),
    ([
        "Are you private?", "Is this private?", "Does my data leave the device?",
        "Who can read our chat?", "Why is on-device better?", "Do you send my words to a server?"
    ], [
        "Yes. I run on your device, and your words do not leave it.",
        "Everything stays here. There is no server and no internet.",
        "Your text stays on this device, so nobody else reads it.",
        "I am private, because all the work is done on your own device.",
        "No server sees this chat. It stays with you."
    ]),
    ([
        "Do you need the internet?", "Do you work offline?", "Can you work without the internet?",
        "Are you online?", "What if I have no network?"
    ], [
        "No, I work without the internet.", "I work offline. All I need is this device.",
        "I do not need a network. Everything runs here.", "Yes, I work offline, even on a plane.",
        "I never go online."
    ]),
    (["What is a token?", "Explain tokens.", "What are tokens?"], [
        "A token is a small piece of text, like a word or a part of a word.",
        "I read text in small pieces. Each piece is a token.",
        "Tokens are the pieces of text that I read and write.",
        "A token can be a word, a part of a word or a sign."
    ]),
    (["What is attention?", "How does attention work?", "Explain attention."], [
        "Attention lets me look back at earlier tokens and pick what is important now.",
        "With attention each new token asks the older tokens for help and mixes their answers.",
        "Attention compares a query with keys and takes a mix of the values."
    ]),
    ([
        "What is a language model?", "How do you work?", "How does a language model work?",
        "How do you write text?"
    ], [
        "A language model guesses the next token, again and again.",
        "I look at the text so far and guess the next piece. Then I do it again.",
        "I turn text into numbers, run them through some layers and pick the next token."
    ]),
    ([
        "What is Vulkan?", "Do you use the GPU?", "What is a compute shader?",
        "How do you run so fast?"
    ], [
        "I can run on the graphics chip with Vulkan compute shaders.",
        "Vulkan is a way to talk to the graphics chip. My numbers are multiplied there.",
        "A compute shader is a small program that runs many times at once on the graphics chip."
    ]),
    (["What is GGUF?", "What is a GGUF file?", "In which file are you stored?"], [
        "GGUF is a file format for models. It holds the weights and the tokenizer.",
        "I am stored in one GGUF file with all my weights and words.",
        "A GGUF file holds everything a small model needs: weights, tokens and settings."
    ]),
    (["What is on-device inference?", "What does on-device mean?",
      "Explain on-device inference."], [
          "On-device means that the model runs on your own machine and not on a server.",
          "It means that all the work happens right here, on this device.",
          "On-device inference runs the model where you are, so it is private and works offline."
      ]),
]


def explain(d):
    q, a = d.c(EXPLAIN)
    d.add(d.c(q), d.c(a), "explain")


# -- (b) stories ------------------------------------------------------------


def story(d, questions=None):
    r = d.rng
    kw, x = {}, r.random()
    ok = lambda k, p, t: held_out(f"{k}|{t}") == d.val
    if x < 0.30:
        kw["kind"] = d.c(KINDS)
        ask_ = f"about {an(kw['kind'])}"
    elif x < 0.42:
        kw["kind"], kw["she"] = d.c(KINDS[:45]), d.p(0.5)
        kw["name"] = (d.c(banks.SHE if kw["she"] else banks.HE) if d.p(0.4) else
                      banks.title(banks.word(d.rng)) if d.p(0.4) else banks.title(banks.FIRST.draw(d.rng)))
        ask_ = f"about {an(kw['kind'])} {d.c('named', 'called')} {kw['name']}"
    elif x < 0.54:
        themes = ("losing something", "honesty", "sharing", "never giving up", "practice",
                  "telling the truth", "being content", "exploring", "friendship")
        kw["obj"] = d.c(OBJECTS)
        kw["kind"], kw["theme"] = d.draw(lambda: (lambda k, t: (f"{k}|{t}", (k, t)))
                                         (d.c(KINDS), d.c(themes)))
        ask_ = f"about {an(kw['kind'])} and {an(kw['obj'])}"
    elif x < 0.64:
        kw["kind"], kw["place"] = d.c(KINDS), d.c(PLACES)
        ask_ = f"about {an(kw['kind'])} in the {kw['place']}"
    elif x < 0.72:
        kw["place"] = d.c(PLACES)
        ask_ = d.c(f"about the {kw['place']}", f"set in the {kw['place']}")
    elif x < 0.82:
        kw["theme"] = d.c(sorted(PLOTS))
        ask_ = f"about {kw['theme']}"
    elif x < 0.88:
        kw["kind"], kw["theme"] = d.draw(lambda: (lambda k, t: (f"{k}|{t}", (k, t)))
                                         (d.c(KINDS), d.c(sorted(PLOTS))))
        ask_ = f"about {an(kw['kind'])} and {kw['theme']}"
    elif x < 0.92 and "name" in d.facts:
        kw["name"], kw["kind"] = d.facts["name"], d.c("girl", "boy")
        kw["she"] = kw["kind"] == "girl"
        ask_ = f"about {an(kw['kind'])} with my name"
    else:
        ask_ = ""
    s = Story(r, allow=ok, **kw)
    if "obj" in kw and kw["obj"] not in s.text:
        s = Story(r, **{**kw, "theme": "sharing"})
    d.story = s
    tale = d.c("a story", "a story", "a story", "a short story", "a tale", "a little story",
               "a bedtime story", "a nice story")
    q = d.c(f"Tell me {tale} {ask_}", f"Tell me {tale} {ask_}", f"Can you tell me {tale} {ask_}",
            f"Please tell me {tale} {ask_}", f"I would like to hear {tale} {ask_}",
            f"Make up {tale} {ask_}", f"Write {tale} {ask_}", f"Do you know {tale} {ask_}",
            f"Now tell me {tale} {ask_}", f"I want {tale} {ask_}", f"Give me {tale} {ask_}",
            f"Could you tell me {tale} {ask_}", f"Do you have {tale} {ask_}", f"Please write {tale} {ask_}",
            f"Invent {tale} {ask_}", f"I'd like {tale} {ask_}").strip()
    q += "?" if q.startswith(("Can", "Do", "Could")) else "."
    d.add(q, s.short if d.short else s.text, "story", s.kind if "kind" in kw else None, names="name"
          in kw, title=False)
    if questions is None:
        questions = d.c(0, 1, 2, 2, 3, 4, 5, 6)
    story_questions(d, questions)


def told_story(d):
    """The user tells the story; the question comes with it or after it."""
    d.story = s = Story(d.rng)
    qs = [q for q in s.questions() if not q[1].startswith("Because")]
    q, a, g = d.c(qs)
    intro = d.c("", "", "Here is a story: ", "Listen to this story. ", "Read this story: ", "Story: ", "I will tell you a story. ")
    if d.p(0.6):
        d.add(intro + s.text + d.c(" ", "\n", "\n\n") + q, a, "story qa", g, names=True, raw=True)
    else:
        d.add(intro + s.text, d.c("What a nice story!", "Thank you for the story.", "I like that story.", "That was a good story."), "chatter", names=True)
    story_questions(d, d.c(0, 1, 2, 3), False)


def story_questions(d, n, may_go_on=True):
    s = d.story
    qs = s.questions()
    d.rng.shuffle(qs)
    told_next = False
    for _ in range(n):
        if may_go_on and not told_next and not d.short and d.p(0.15):
            told_next = True
            d.add(
                d.c("What happened next?", "And then?", "Tell me more.", "Please go on.",
                    "How does it go on?", "Continue the story.", "What happened after that?",
                    "More!"), s.next(), "story next", s.hero, title=False)
        elif qs:
            q, a, g = qs.pop()
            if d.short and s.friend not in s.short and s.friend in a:
                continue
            if d.short and (s.obj_full not in s.short and s.obj in q or s.lesson in a):
                continue
            d.add(q, a, "story qa", g, names=True)
