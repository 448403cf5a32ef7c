//! `{% generation %}` … `{% endgeneration %}`: Hugging Face's mark round what training learns from.

/// Turns the tags into an `if true` that keeps their white-space control; everything else stays as it is.
pub(super) fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(open) = rest.find("{%") {
        let (before, tag) = rest.split_at(open);
        out.push_str(before);
        let Some(close) = tag.find("%}") else { break };
        let (tag, after) = tag.split_at(close + 2);
        let name = tag[2..close].trim_matches(['-', '+']).trim();
        match name {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
