//! Earlier reasoning in the messages of a request.

use std::ops::Range;

use crate::families::History;
use crate::json::cursor::Cursor;
use crate::role::Role;
use crate::scan::ChatScan;
use crate::splice::Edits;

/// Takes the reasoning out of earlier answers that the family's template must not see again. What goes depends on the messages alone, so
/// a turn begins with the same bytes as the one before it, up to where the user has spoken since. Whether anything is
/// changed.
pub fn edit(edits: &mut Edits, body: &[u8], scan: &ChatScan, history: History) -> bool {
    let mut changed = false;
    let until = match history {
        History::Keep => 0,
        History::Strip => scan.messages.len(),
        // The loop of calls that is open began with the user's last words.
        History::ToolLoop => {
            let last = scan.messages.iter().rposition(|one| one.role == Role::User);
            last.unwrap_or(0)
        }
    };
    for message in scan.messages.iter().take(until) {
        if message.reasons && message.role == Role::Assistant {
            for span in thoughts(body, message.span.clone()) {
                edits.replace(span, "");
                changed = true;
            }
        }
    }
    changed
}

/// The members of a message that hold reasoning, each with one of the commas around it.
fn thoughts(body: &[u8], message: Range<usize>) -> Vec<Range<usize>> {
    let Some(text) = body.get(message.clone()) else {
        return Vec::new();
    };
    let mut members: Vec<(Range<usize>, bool)> = Vec::new();
    let mut cursor = Cursor::new(text);
    let walked = cursor.object(|c, key| {
        let thought = matches!(&*key.name(), b"reasoning_content" | b"reasoning");
        let value = c.value()?;
        members.push((key.offset - 1..value.end, thought));
        Ok(())
    });
    if walked.is_err() {
        return Vec::new();
    }
    let mut spans = Vec::new();
    // Whether a member that stays came before.
    let mut kept = false;
    for (at, (span, thought)) in members.iter().enumerate() {
        if !thought {
            kept = true;
            continue;
        }
        let next = members.get(at + 1).map(|(next, _)| next.start);
        let before = at.checked_sub(1).and_then(|at| members.get(at));
        let range = match (kept, before, next) {
            (true, Some((before, _)), _) => before.end..span.end,
            (_, _, Some(next)) => span.start..next,
            (_, _, None) => span.clone(),
        };
        spans.push(message.start + range.start..message.start + range.end);
    }
    spans
}
