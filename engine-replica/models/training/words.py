"""The words that the tasks are made of."""

NAMES = "Ana Ben Cleo Dan Eva Finn Gus Hana Ivan Jane Kai Lena Max Nina Omar Paul Rosa Sam Tara Uma Vera Will Yara Zoe Leo Mia Noah Ella Hugo Iris".split()
COLORS = "red blue green yellow black white pink brown gray purple orange".split()
CITIES = "Paris Rome Berlin Madrid London Oslo Vienna Athens Cairo Lima Tokyo Dublin Prague Warsaw Lisbon Helsinki Bern Ottawa Havana Delhi".split()
CAPITALS = {"France": "Paris", "Italy": "Rome", "Germany": "Berlin", "Spain": "Madrid", "England": "London", "Norway": "Oslo",
            "Austria": "Vienna", "Greece": "Athens", "Egypt": "Cairo", "Peru": "Lima", "Japan": "Tokyo", "Ireland": "Dublin",
            "Poland": "Warsaw", "Portugal": "Lisbon", "Finland": "Helsinki", "Switzerland": "Bern", "Canada": "Ottawa",
            "Cuba": "Havana", "India": "Delhi"}
ITEMS = "key coin book lamp ring map cup bell pen box hat stone rope clock letter flag".split()
PLACES = "kitchen garden cellar attic garage office library hall barn tower shed chapel".split()
ANIMALS = "cat dog horse parrot rabbit goat turtle snake duck hamster".split()
FOODS = "pizza soup rice bread cheese apples pasta fish salad cake".split()
JOBS = "baker doctor pilot teacher farmer painter singer lawyer nurse sailor".split()
WORDS = ("apple banana cherry strawberry pepper lemon melon tomato potato carrot onion garlic butter cheese bread cookie coffee "
         "water river ocean mountain valley forest meadow desert island bridge castle village street market garden flower tree "
         "window mirror table chair kitchen bottle basket hammer ladder pencil letter paper ribbon button pocket jacket sweater "
         "summer winter spring autumn morning evening thunder shadow rainbow planet comet rocket engine wheel tractor railway "
         "monkey tiger zebra giraffe elephant rabbit kitten puppy parrot eagle sparrow dolphin turtle lizard spider beetle "
         "teacher doctor farmer painter singer writer soldier sailor captain wizard knight queen prince dragon giant fairy "
         "happy silly clever gentle brave quiet noisy yellow purple orange silver golden little better bigger sudden simple "
         "running walking jumping singing reading writing cooking hidden broken frozen dancing swimming pattern message "
         "sister brother mother father cousin family friend neighbor member number letterbox puzzle riddle secret treasure "
         "success address balloon committee coffee bookkeeper mississippi raspberry blueberry pineapple coconut mango grape "
         "cat dog sun moon star bird fish frog bear wolf lamp book door wall roof ship boat road hill lake rain snow wind").split()
ONSET = "b c d f g h j k l m n p r s t v w z br cr dr st tr pl gr sh ch".split()
VOWEL = "a e i o u a e i o ee oo".split()
CODA = ["", "", "", "n", "r", "l", "s", "t", "m", "ck", "rt", "nd"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
POS = ["good", "great", "lovely", "wonderful", "excellent", "superb", "delightful", "brilliant"]
NEG = ["bad", "awful", "terrible", "boring", "horrible", "poor", "dreadful", "dull"]
THINGS = "film book meal hotel show song game trip phone service".split()
FILLER = ["The weather was mild and the street was quiet.", "A train passed in the distance.", "Nobody spoke for a while.",
          "The market opens early on most days.", "There was a long list of things to do.", "Some birds sat on the old wall.",
          "The road goes over the hill and down to the lake.", "Later the rain stopped and the sun came out.",
          "The old clock was slow again.", "People came and went all morning.", "A small boat lay near the bridge.",
          "The bread was still warm.", "Two children played with a ball.", "The letter was never sent.",
          "It took longer than they had planned.", "Everyone agreed that this was fine.", "The window was open all night.",
          "They talked about the harvest and the news.", "The report had many pages.", "The meeting ended before noon."]
SYSTEMS = ["You are a helpful assistant.", "You are Abacus, a tiny demonstration model.", "You are a concise assistant.", "Answer briefly.",
           "You are a careful assistant. Keep answers short.", "Be brief and correct.", "You are an assistant."]
