use std::fmt::Write as _;

use super::*;

fn every() -> Vec<Failure> {
    let replica: Arc<str> = "replica-0".into();
    let cause = || String::from("<cause>");
    let after = Duration::from_secs(5);
    vec![
        Failure::NotFound { path: "/v2".into() },
        Failure::MethodNotAllowed { allowed: "POST" },
        Failure::BadBody {
            message: "<message>".into(),
        },
        Failure::BadBudget {
            field: "thinking_token_budget",
            message: "<message>".into(),
        },
        Failure::BadWish {
            message: "reasoning_effort is `banana`, expected one of `none`, `low`".into(),
        },
        Failure::WishRefused {
            message: "the request asks for thinking, and its lane `quick` does not think and takes no wishes; leave that out".into(),
        },
        Failure::NoBudget {
            message: "<message>".into(),
        },
        Failure::BodyTooLarge { limit: 8 },
        Failure::BodyCut,
        Failure::BodySlow { after },
        Failure::ModelNotFound {
            model: "m".into(),
            known: "a, b".into(),
        },
        Failure::PromptTooLong {
            bytes: 9_000,
            limit: 8_000,
        },
        Failure::SessionBusy { limit: 4 },
        Failure::Overloaded { limit: 2 },
        Failure::NoReplica,
        Failure::NoReplicaInPool {
            lane: "long".into(),
            pool: "big".into(),
        },
        Failure::Connect {
            replica: replica.clone(),
            cause: cause(),
        },
        Failure::Reset {
            replica: replica.clone(),
            cause: cause(),
        },
        Failure::FirstByteTimeout {
            replica: replica.clone(),
            after,
        },
        Failure::Truncated {
            replica: replica.clone(),
            cause: cause(),
        },
        Failure::IdleTimeout {
            replica: replica.clone(),
            after,
        },
        Failure::EventTooLarge {
            replica,
            cause: cause(),
        },
    ]
}

#[test]
fn the_table_of_failures_is_as_written() {
    let mut table = String::new();
    for failure in every() {
        let Row {
            status,
            kind,
            code,
            fault,
            retryable,
            retry_after,
            outcome,
        } = failure.row();
        let retry = if retryable { "retryable" } else { "final" };
        let outcome = outcome.as_str();
        let after = retry_after.map_or(String::new(), |s| format!(" retry-after={s}"));
        let status = status.as_u16();
        writeln!(
            table,
            "{status} {kind} {code} fault={fault:?} {retry} {outcome}{after}"
        )
        .unwrap();
        writeln!(table, "    {failure}").unwrap();
    }
    expect_test::expect_file!["../../FAILURES.txt"].assert_eq(&table);
}
