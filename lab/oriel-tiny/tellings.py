"""More ways to tell a fact, and to take note of one: patterns for phrases.say, where {v} is the value.

People tell the same fact in hundreds of ways.  A model that learned only ten of them answers "you have not told me"
to an eleventh. This file therefore has many patterns, most with optional parts.
"""

NOW = "[(these days|at the moment|right now|nowadays|since last year|for (a year|many years|a long time) now|at present|this year|again|as always)]"
BEST = "(best|most|the most|more than anything|above all)"
FAV = "(favourite|favorite)"

# Clauses without a full stop, by slot; the value's article is {a_v}.
CLAUSES = {
    "name": [
        "(Most people|Folks|All my friends|My colleagues|My neighbours) (call me|know me as) {v}",
        "My parents (named|called) me {v}",
        "I (was given|got|carry|have) the name {v}",
        "You are (talking|speaking|chatting|writing) (to|with) {v}",
        "The name on my (door|badge|passport|bag) is {v}",
        "I (usually|mostly|always) (go by|use the name) {v}",
        "I (answer to|listen to) [the name] {v}",
        "My [(first|real|given)] name is {v}",
        "The person (talking|writing) to you is (called|named) {v}",
        "I am (known|registered) [here] as {v}",
        "[My name?] It is {v}",
    ],
    "age": [
        "I am {v} years (old|of age) [(now|today|already)]",
        "I have (reached|come to) the age of {v}",
        "My age is {v} [years]",
        "I am already {v} [years old]",
        "It is {v} years since I was born",
        "I (became|got to be|will stay) {v} [this (month|spring|winter|summer)]",
        "I have lived for {v} years",
        "I celebrated my birthday number {v}",
    ],
    "colour": [
        f"(Of all colours|Among the colours) I (like|love|prefer) {{v}} [{BEST}]",
        f"No colour is (as nice|as pretty|better) [to me] (as|than) {{v}}",
        f"I (paint|want|buy|wear) everything in {{v}}, [because] (that is|it's) my {FAV} colour",
        f"My {FAV} colour [by far] (must be|would be|is certainly|is and stays|happens to be) {{v}}",
        f"The colour that I like {BEST} is {{v}}",
        "When it comes to colours, I (pick|choose|take|like) {v}",
        f"I am fond of {{v}} as a colour",
    ],
    "food": [
        f"There is nothing [to eat] that I like more than {{v}}",
        f"My {FAV} (dish|meal|thing to eat) is {{v}}",
        f"I (am crazy about|am fond of|adore|really like|cannot resist) {{v}} [as a food|when I am hungry]",
        "(When I am hungry|For lunch|For supper|On Sundays) I [always] (want|eat|have|cook|order) {v}",
        f"(Of all food|Among all dishes) I (like|love|prefer) {{v}} [{BEST}]",
        "The tastiest food (in the world|there is|for me) is {v}",
        "I would (walk a mile|do anything) for {v}",
    ],
    "drink": [
        "(When I am thirsty|In the morning|With my meals) I [always] (want|drink|have|take|order) {v}",
        f"My {FAV} (drink|thing to drink) is {{v}}",
        f"I (am fond of|adore|really like) {{v}} as a drink",
        f"There is nothing [to drink] that I like more than {{v}}",
    ],
    "animal": [
        f"No animal is (as nice|better) [to me] (as|than) the {{v}}",
        f"(Of all animals|Among the animals) I (like|love) the {{v}} {BEST}",
        f"The animal that I like {BEST} is the {{v}}",
        "When it comes to animals, I (pick|choose|like) the {v}",
    ],
    "city": [
        f"I (live|have my home|have a house|have a flat|rent a room|stay) {NOW} in {{v}}",
        "I (came|moved|went) to {v} [(two|three|ten) years ago] and (stayed|live) there [now]",
        "(We|My family) (moved|have moved) to {v} [(last year|in spring|long ago)]",
        "My (street|garden|front door|bed|new home|family home) is in {v}",
        "The (place|town|city) (where I live|I call home|I live in) is [called] {v}",
        "I (call {v} my home|have settled in {v}|am at home in {v})",
        "I am a (citizen|resident|child) of {v}",
        f"{NOW} I am living in {{v}}",
        "You (find|can visit) me (at home|) in {v}",
    ],
    "country": [
        "I (live|was born|grew up) in a country (called|named) {v}",
        "My (passport|country|home country) is (from|) {v}",
        "I (belong to|am a citizen of) the country {v}",
    ],
    "code": [
        "(The|My|Our) [secret|safe|door|entry|access] code is {v}",
        "The (safe|door|gate|locker|lock) (opens|can be opened) with [the code] {v}",
        "The code for the (safe|door|gate|locker|alarm) is {v}",
        "You (get in|come in|open it) with the code {v}",
        "I (chose|set|use|was given|got) [the code] {v} (as my code|as the secret code|for the code)",
        "The (secret number|number code) is {v}",
    ],
    "pin": [
        "The PIN (of my card|of my phone|to unlock it) is {v}",
        "I (use|chose) {v} as my PIN",
        "You need the PIN {v} [for my card]",
    ],
    "word": [
        "(The|My|Our) (password|secret word|code word|magic word) (is|was|shall be|for the door is) {v}",
        "(We|I) (chose|picked|agreed on|use|took) {v} as (the|our|my) (password|secret word|code word)",
        "The word (to keep in mind|you should know|that opens the door|to say at the door) is {v}",
        "You (get in|open the box) with the (password|word) {v}",
        "The [(new|current)] password (reads|goes) {v}",
    ],
    "hobby": [
        "I (spend|pass) my (free time|weekends|evenings) (with|) {v}",
        "(When I have time|On Sundays|After work|At weekends) I [always] (like|enjoy|go for) {v}",
        "What I (like to do|do for fun) is {v}",
        f"I (am fond of|am into|really like|adore) {{v}}",
        "My [great] (pastime|hobby) (is|has always been) {v}",
    ],
    "birthday": [
        "My birthday (is|will be|comes) on {v} [(every year|as you know)]",
        "I came (to the world|into the world) on {v}",
        "(We|My friends and I) (celebrate|have cake|have a party) on {v}, [because] (that is|it's) my birthday",
        "The (date|day) of my birth is {v}",
        "On {v} I (turn a year older|have my birthday|get presents for my birthday)",
        "I (blow out candles|get my birthday cake) on {v}",
    ],
    "friend": [
        "My (best|closest|oldest|dearest) friend (is|is named|has always been|is still) {v}",
        "I (have known|play with|share everything with|walk to school with|meet) {v}, my (best|dearest) friend [(since school|every day|for years)]",
        "There is nobody like my [best] friend {v}",
        "The friend (I like best|I trust most|who is closest to me) is [called] {v}",
        "My friend's (first|) name is {v}",
    ],
    "job": [
        f"I (work|have worked|make a living|earn money|am employed) {NOW} as {{a_v}}",
        "(By trade|By profession|In my job|During the week) I am {a_v}",
        "I (became|trained as|have become|got a job as|have a job as|was hired as) {a_v} [(last year|long ago)]",
        "My (work|job|profession|trade) is (that of {a_v}|being {a_v})",
        "People (pay|hire) me as {a_v}",
        "I have been {a_v} [(for years|since last year)]",
    ],
    "number": [
        f"My (lucky|{FAV[1:-1]}) number (is|was|must be|happens to be|will always be) {{v}}",
        "The number that (brings me luck|is lucky for me|I like best) is {v}",
        f"(Of all numbers|Among the numbers) I like {{v}} {BEST}",
        "I (always|mostly) (bet on|choose|pick) [the number] {v}, [because] it is my lucky number",
        "My luck (comes from|is in) the number {v}",
    ],
    "sport": [
        f"I (play|do|practise|train) {{v}} [(twice a week|on Mondays|in a club)]",
        f"My {FAV} sport [by far] (is|must be) {{v}}",
        f"(Of all sports|Among the sports) I like {{v}} {BEST}",
    ],
    "subject": [
        f"(Of all subjects|At school) I like {{v}} {BEST}",
        "I am (good at|best in|looking forward to) {v} at school",
        "My best (lesson|class) is {v}",
    ],
    "language": [
        "My (mother tongue|first language|language at home) is {v}",
        "(We|My family and I) (speak|talk in) {v} [at home]",
        "I (grew up with|dream in|know) {v}",
    ],
    "surname": [
        "My (last|second|family) name is {v}",
        "The (family|last) name I (have|carry) is {v}",
        "My family is called {v}",
    ],
    "nickname": [
        "My (friends|brothers|classmates) (gave me the nickname|always call me|named me) {v}",
        "My nickname (is|has always been) {v}",
    ],
    "season": [
        f"(Of all seasons|Among the seasons) I like {{v}} {BEST}",
        f"The season that I like {BEST} is {{v}}",
    ],
    "instrument": [
        "I (play|practise|take lessons on|learn to play) the {v} [(every day|in a band|at school)]",
        "My [musical] instrument is the {v}",
    ],
    "phone": [
        "You (reach|get|can reach) me at {v}",
        "My (phone|number|phone number) is {v}",
        "The number of my phone is {v}",
    ],
    "room": [
        "(My|The) room (has the number|number is) {v}",
        "You (find|can visit) me in room {v}",
        "I (sleep|work|live) in room {v}",
    ],
    "meeting": [
        "The meeting (will be|takes place|begins|is planned|was moved to) [at] {v}",
        "We (see each other|come together) for the meeting at {v}",
    ],
    "train": [
        "(My|The) train (will leave|departs|goes|starts) at {v}",
        "I (take|catch) the train at {v}",
    ],
    "key": [
        "(I|We) (left|have left|placed|keep|have put|dropped) the key in the {v}",
        "The key (lies|can be found|is hidden|is kept) in the {v}",
        "You (find|will find) the key in the {v}",
    ],
    "treasure": [
        "The (treasure|gold) (lies|is hidden|can be found) under the {v}",
        "You (find|will find) the treasure under the {v}",
    ],
}

# Used in the last stage of training only, in addition to those above: the model did not recognise comparisons, or
# sentences with the value first, as facts.
LATE_CLAUSES = {
    "number": [
        "{v} (is|was|has been|has always been|must be) (lucky|good) for me, [so] (that is|it's) my lucky number",
        "{v} (gives|has given|promises) me (good fortune|success), so it is my lucky number",
        "(Good things happen|I win|I am happy) (with|whenever I see|when I take) {v}, my lucky number",
        "{v} is the (number|one) (I trust|that helps me), my lucky number",
        "(I believe in|I swear by|I trust in) {v} as my lucky number",
        "(If it comes to luck|For luck), I (take|trust) the number {v}",
        "With {v} I am always lucky",
    ],
    "food": [
        "I (prefer|choose|would take) {v} (over|before) (all other dishes|every other dish|anything else on the table)",
        "I (eat|enjoy|want) {v} more (often|gladly) than (anything else|other dishes|all the rest)",
        "{v} (is|tastes) better than (any other dish|all other meals|everything else)",
        "{v} beats (all other food|every other dish|any meal)",
        "Nothing (on a plate|in the kitchen|I know) (beats|tastes like) {v}",
        "(Tonight|For breakfast|At the party|For my birthday|At noon) I (wish for|would like|get|will cook) {v}, (my best-loved dish|the food I like most|what I like best)",
        "{v} is (what I like to eat|what I love to eat|the food for me|all I want to eat)",
        f"{{v}}, that is my {FAV} food",
    ],
    "colour": [
        "I (like|love) {v} (better|more) than (all other colours|every other colour|the other colours)",
        "{v} is (the colour for me|the prettiest colour|prettier than all other colours)",
        f"{{v}} is (a colour I love|the one I like), my {FAV} colour",
    ],
    "drink": [
        "I (like|prefer|want) {v} (before|over) (all other drinks|anything else to drink)",
        "{v} is (better than|nicer than) (any other drink|all other drinks)",
    ],
    "animal": ["I (like|love) the {v} (better|more) than (all other animals|any other animal)"],
    "friend": [
        "{v} (is|was|became|stays|will be) my (best|dearest|closest) friend [(since we were small|from school|for ever|as always)]",
        "(Yesterday|This morning|Last week|On Sunday) I (saw|phoned|visited|talked to|wrote to) {v}, my (best|dearest) friend",
        "My (best|dearest) friend {v} (came by|wrote to me|moved away|is ill|was here) [(today|last night)]",
        "(I went to the sea|I play chess|I share a room) with my best friend {v}",
    ],
    "pet dog": [
        "(I|We) (take|took|bring) (my|our) dog {v} (to the park|with us|to the lake)",
        "Our dog's name, {v}, is on the door",
    ],
    "city": [
        "I was (born|a child) in {v} and (never left|have my home there)",
        "(It rains in|The bells ring in|I am fond of) {v}, where I (live|have my home)",
    ],
}

# Clauses about a person, a place or a pet of the user; N is "sister", "dog", "school".
OF_PERSON = [
    "My N (is called|is named|has the name|goes by|answers to|is known as) {v}",
    "(I have|There is|We have) a N (called|named|whose name is) {v} [(at home|in my life)]",
    "(I|We) (saw|met|visited|called|helped|walked with) my N {v} [(today|yesterday|last week|this morning)]",
    "My N's [(first|full)] name is {v}",
    "{v} is (what my N is called|my N|the name of my N)",
    "The (name|one name) (of|for) my N is {v}",
    "My N {v} (is with me|is very kind|is funny|sends greetings|makes me laugh|is here [today])",
]
OF_PET = [
    "(My|Our) N (is called|answers to|listens to|was named|got the name) {v}",
    "(I have|We have|I got|We keep|I own) a N (called|named|whose name is) {v} [(at home|in the garden|since spring)]",
    "(I|We) (named|called|fed|brushed|played with|looked after) (my|our) N {v} [(today|yesterday|last week|this morning)]",
    "(My|Our) N's name is {v}",
    "{v} is (what we call our N|our N|the name of our N)",
    "(My|Our) N {v} (is asleep|is hungry|is very old|is still young|loves me|sits next to me)",
    "At home (there is|lives) (my|our) N {v}",
]
OF_PLACE = [
    "(My|Our|The) N (is called|is named|has the name|is known as|goes by the name) {v}",
    "The name of (my|our) N is {v}",
    "(My|Our) N's name is {v}",
    "{v} is (what my N is called|the name of my N|the name we gave our N)",
    "{v}, (that is|so is) the name of my N",
]
OF_FAVOURITE = [
    f"My {FAV} N [by far] (is|must be|would be|has always been|happens to be|is and stays) {{v}}",
    f"(Of all|Among) (the|) Ns I (like|love|prefer) {{v}} [{BEST}]",
    f"The N that I like {BEST} is {{v}}",
    f"No N is (as good|as nice|better) [to me] (as|than) {{v}}",
    "When it comes to a N, I (pick|choose|take|like) {v}",
]

# For every noun ("my name", "the meeting"): {n}, with a capital {N}.
OF_NOUN = [
    "{N} (is|would be|will be|happens to be|is simply|is still|is of course) {v}",
    "{N}[, as you may know,] is {v}",
    "(As for|About|When it comes to|Concerning) {n}, it is {v}",
    "{v} is {n}",
    "(If you ask me|If somebody asks) for {n}, it is {v}",
    "(You can|You may|You should|Please) (note|store|save|keep|write down|put down) {v} (as|for) {n}",
]

# Around a clause: {s} the clause, {l} the clause in the middle of a sentence.
FRAMES = [
    "{s}, (by the way|just so you know|in case you need it|you know|if that matters|I think|as I said|don't forget|okay|write it down).",
    "(Before we (begin|start)|First of all|To begin with|In case you wonder|In case you need it|For later|As you may know|One thing|A fact about me|Something else|Between you and me|Listen|Look|Note this|Save this|Store this)(,|:) {l}.",
    "(I think|I guess|I suppose|It is true that|It is important that|You may know that|I hope you know that|I would like you to know that|Let me say that|I can tell you that|I want you to remember that) {l}.",
    "{s}. (Keep it in mind|You will need it later|I will ask you later|Note it down|Write that down|Make a note of it|That is important|That matters to me|Now you know|Let us talk about something else now|I will come back to it).",
    "(Hi|Hello|Hey|Good morning|Good evening|Oh|Well|So|Okay|Now|Right|Yes)(,|!) {l}.",
    "(I was (tired|happy|busy|late) today|It is (warm|cold|sunny) here|I have a minute|I just came home). {s}.",
    "{s}. (It is nice here|I had a long day|I am in a hurry|The weather is good|Nice to talk to you).",
    "{s}. (How are you|What about you|Can you note that|Got it|Okay|Is that good|Do you like that|Will you remember it)?",
]

# The assistant's replies to a fact that do not repeat it; see `acknowledge` in skills_memory.py.
PLAIN_ACK = [
    "(Okay|All right|Got it|Noted|Sure|Fine|I see|Thanks|Thank you|Understood|Very well)[, (I will (remember|keep|note) (that|it|this)|I will keep (that|it) in mind|thank you for telling me|thanks for telling me)].",
    "I will (remember|keep|note|not forget) (that|it|this).",
    "(Good|Nice|Great|Interesting) to know[, thank you].",
    "(That is|How) (nice|interesting|good to know).",
    "(Okay|Good|Thank you). (What else|Anything else|What can I do for you|What next|Do you want to tell me more)?",
    "Thank you[ for telling me][, (I have noted it|that helps)].",
]
