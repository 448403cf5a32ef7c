use proptest::prelude::*;

use super::*;
use crate::answer_text::ThinkTokens;

const OPEN: u32 = 256;
const CLOSE: u32 = 257;
const TOOL: u32 = 258;
/// What the replica writes: `!›.` to close, `wW` to prolong.
const CLOSING: [u32; 3] = [b'!' as u32, CLOSE, b'.' as u32];
const PROLONG: [u32; 2] = [b'w' as u32, b'W' as u32];

fn start(opened: bool, prompt_tokens: u32) -> Thinking {
    Thinking {
        tokens: ThinkTokens {
            open: OPEN,
            close: CLOSE,
        },
        opened,
        prompt_tokens,
    }
}

fn budget(most: Option<u32>, least: u32) -> ThinkBudget {
    let words = ThinkWords {
        closing: CLOSING.to_vec(),
        prolong: PROLONG.to_vec(),
        tool: Some(TOOL),
    };
    ThinkBudget {
        words: Arc::new(words),
        most,
        least,
    }
}

fn bytes_of(token: u32) -> Vec<u8> {
    u8::try_from(token).map_or(Vec::new(), |byte| vec![byte])
}

/// The first `count` tokens of an answer by a model that says `wish` one token after the other and, like any model, has
/// not said what it was not let say.
fn answer(
    budget: &ThinkBudget,
    start: Thinking,
    wish: &[u32],
    count: usize,
) -> (Vec<u32>, BudgetCounts) {
    let mut guard = ThinkGuard::new(budget.clone(), start);
    let mut wish = wish.iter();
    let (mut said, mut counts) = (Vec::new(), BudgetCounts::default());
    while said.len() < count {
        let mut next = guard.forced();
        if next.is_none() {
            let Some(&token) = wish.next() else { break };
            next = Some(token);
            if guard.prolongs(token) {
                next = guard.forced();
            }
        }
        let token = next.expect("chosen or forced");
        guard.push(token, &bytes_of(token));
        counts += guard.take_counts();
        said.push(token);
    }
    (said, counts)
}

/// `‹` opens, `›` closes, `T` calls a tool, all else is one token a byte.
fn tokens(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    for c in text.chars() {
        match c {
            '‹' => tokens.push(OPEN),
            '›' => tokens.push(CLOSE),
            'T' => tokens.push(TOOL),
            other => tokens.extend(other.to_string().bytes().map(u32::from)),
        }
    }
    tokens
}

#[track_caller]
fn check(
    most: Option<u32>,
    least: u32,
    start: Thinking,
    wish: &str,
    expect: &str,
    counts: [u64; 3],
) {
    let (said, got) = answer(&budget(most, least), start, &tokens(wish), 1000);
    assert_eq!(said, tokens(expect), "{wish}");
    assert_eq!([got.reached, got.closed, got.prolonged], counts, "{wish}");
}

#[test]
fn a_budget_allows_its_tokens_and_no_more() {
    let free = start(false, 0);
    check(Some(3), 0, free, "‹abcdef", "‹abc!›.def", [1, 1, 0]);
    check(Some(3), 0, free, "‹ab›yes", "‹ab›yes", [0, 0, 0]);
    check(
        Some(3),
        0,
        free,
        "yes, no limit here",
        "yes, no limit here",
        [0, 0, 0],
    );
    check(Some(0), 0, free, "‹abc", "‹!›.abc", [1, 1, 0]);
    check(None, 0, free, "‹abcdefgh›", "‹abcdefgh›", [0, 0, 0]);
    // The budget is used up to the token, and the model would have closed by itself: it is closed for it.
    check(Some(2), 0, free, "‹ab›yes", "‹ab!›.›yes", [1, 1, 0]);
}

#[test]
fn tokens_of_the_prompt_after_the_open_mark_count() {
    check(Some(3), 0, start(true, 1), "abcdef", "ab!›.cdef", [1, 1, 0]);
    check(Some(3), 0, start(true, 9), "ab", "!›.ab", [1, 1, 0]);
    check(Some(0), 0, start(true, 0), "ab", "!›.ab", [1, 1, 0]);
}

#[test]
fn a_character_is_finished_first_and_within_three_tokens() {
    check(Some(1), 0, start(true, 0), "é!x", "é!›.!x", [1, 1, 0]);
    check(Some(2), 0, start(true, 0), "a𝄞x", "a𝄞!›.x", [1, 1, 0]);
    // A first byte of four, and none of the others: what cannot become a character is not waited for.
    let broken = [0xf0, 0x9f, u32::from(b'a'), u32::from(b'b')];
    let (said, _) = answer(&budget(Some(1), 0), start(true, 0), &broken, 9);
    assert_eq!(said[..4], [0xf0, 0x9f, u32::from(b'a'), CLOSING[0]]);
    // Tokens without text finish nothing.
    let silent = [0xf0, 300, 300, 300, 300];
    let (said, _) = answer(&budget(Some(1), 0), start(true, 0), &silent, 9);
    assert_eq!(said[..5], [0xf0, 300, 300, 300, CLOSING[0]]);
}

// RC-130: a block that opens again is under what is left of the one budget.
#[test]
fn rc_130_a_reopened_block_is_closed_at_once() {
    let free = start(false, 0);
    check(
        Some(3),
        0,
        free,
        "‹abcd‹efgh",
        "‹abc!›.d‹!›.efgh",
        [2, 2, 0],
    );
    check(Some(3), 0, free, "‹ab›x‹cd›", "‹ab›x‹c!›.d›", [1, 1, 0]);
    // A mark inside an open block does not count anew.
    check(Some(3), 0, free, "‹a‹b‹c", "‹a‹b!›.‹!›.c", [2, 2, 0]);
}

#[test]
fn a_call_of_a_tool_ends_the_block() {
    let free = start(false, 0);
    check(Some(3), 0, free, "‹abT{abcdef}", "‹abT{abcdef}", [0, 0, 0]);
    check(Some(3), 9, free, "‹abT", "‹abT", [0, 0, 0]);
}

// RC-137: the mark gives way to "Wait", twice at most.
#[test]
fn rc_137_a_closing_mark_that_comes_too_early_is_put_off_twice() {
    let free = start(false, 0);
    check(None, 9, free, "‹ab›cd›e›x", "‹abwWcdwWe›x", [0, 0, 2]);
    check(None, 4, free, "‹ab›c›x", "‹abwWc›x", [0, 0, 1]);
    check(None, 2, free, "‹ab›x", "‹ab›x", [0, 0, 0]);
    check(Some(3), 9, free, "‹ab›cd", "‹abw!›.cd", [1, 1, 1]);
}

#[test]
fn closing_and_answer_fit_into_the_maximum() {
    #[track_caller]
    fn fitted(most: u32, start: Thinking, max_tokens: u32, expect: u32) {
        let mut budget = budget(Some(most), 0);
        budget.fit(start, max_tokens);
        assert_eq!(budget.most, Some(expect));
    }
    fitted(16, start(false, 0), 100, 16);
    // 100 less 3 to close, 1 to open, 16 to answer.
    fitted(500, start(false, 0), 100, 80);
    fitted(500, start(true, 5), 100, 86);
    fitted(500, start(false, 0), 10, 3);
    fitted(500, start(false, 0), 1, 0);
    let mut none = budget(None, 0);
    none.fit(start(false, 0), 1);
    assert_eq!(none.most, None);
}

/// The same rules once more, looking at the whole answer so far for every token.
fn plain(most: u32, least: u32, start: Thinking, wish: &[u32]) -> Vec<u32> {
    let mut said: Vec<u32> = Vec::new();
    let (mut thought, mut open, mut put_off) = (start.prompt_tokens, start.opened, 0);
    let mut tail: Vec<u8> = Vec::new();
    let mut wish = wish.iter().copied();
    let mut queue: Vec<u32> = Vec::new();
    loop {
        let whole = !matches!(std::str::from_utf8(&tail), Err(e) if e.error_len().is_none());
        if open && thought >= most && (whole || thought - most >= 3) {
            said.extend(CLOSING);
            open = false;
            queue.clear();
            continue;
        }
        let from_queue = !queue.is_empty();
        let token = if from_queue {
            queue.remove(0)
        } else {
            let Some(token) = wish.next() else {
                return said;
            };
            token
        };
        if open && !from_queue && token == CLOSE && thought < least && put_off < 2 {
            put_off += 1;
            queue.extend(PROLONG);
            continue;
        }
        said.push(token);
        if !open {
            if token == OPEN {
                (open, tail) = (true, Vec::new());
            }
        } else if !from_queue && (token == CLOSE || token == TOOL) {
            open = false;
        } else {
            thought += 1;
            tail.extend(bytes_of(token));
            // Bytes that are no character any more are characters of their own.
            while let Err(error) = std::str::from_utf8(&tail) {
                let Some(length) = error.error_len() else {
                    break;
                };
                tail.drain(..error.valid_up_to() + length);
            }
        }
    }
}

proptest! {
    #[test]
    fn the_fold_is_the_plain_rule_and_the_same_again_from_any_point(
        wish in prop::collection::vec(
            prop::sample::select(vec![OPEN, CLOSE, CLOSE, TOOL, 97, 98, 97, 98, 0xc3, 0xa9, 0xf0, 0x9d, 300]), 0..40),
        most in 0u32..12,
        least in 0u32..12,
        opened in any::<bool>(),
        in_prompt in 0u32..4,
        cut in 0usize..60,
    ) {
        let start = start(opened, if opened { in_prompt } else { 0 });
        let budget = budget(Some(most), least);
        let (said, counts) = answer(&budget, start, &wish, usize::MAX);
        prop_assert_eq!(&said, &plain(most, least, start, &wish));
        prop_assert_eq!(counts.reached, counts.closed);

        // A fold over the tokens said so far is in the same place as the one that watched them come.
        let cut = cut.min(said.len());
        let mut again = ThinkGuard::new(budget.clone(), start);
        for &token in &said[..cut] {
            if let Some(forced) = again.forced() {
                prop_assert_eq!(forced, token);
            } else if token == PROLONG[0] {
                prop_assert!(again.prolongs(CLOSE));
            }
            again.push(token, &bytes_of(token));
        }
        let (first, _) = answer(&budget, start, &wish, cut);
        prop_assert_eq!(&first[..], &said[..cut]);
    }
}
