//! A table that reads well on a terminal and pastes as Markdown.

/// `rows` under `head`, columns padded to their widest cell. The first column stands left, the others right.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(head[column].chars().count())
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let mut text = line(&mut head.iter().copied());
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, &width)| match column {
            0 => "-".repeat(width + 2),
            _ => format!("{}:", "-".repeat(width + 1)),
        })
        .collect();
    text.push_str(&format!("|{}|\n", rule.join("|")));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}
