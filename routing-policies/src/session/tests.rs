use super::*;

struct Request {
    headers: &'static [(&'static str, &'static str)],
    /// Found at `metadata.session_id` and `user`, the body fields of the policy under test.
    body: [Option<&'static str>; 2],
}

fn policy(headers: &[&str], agents: bool) -> SessionPolicy {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    SessionPolicy {
        headers: owned(headers),
        agents,
        body: owned(&["metadata.session_id", "user"]),
        ..SessionPolicy::default()
    }
}

fn identify_as(policy: &SessionPolicy, tenant: &str, model: &str, request: &Request) -> Identity {
    let header = |name: &str| {
        let found = request.headers.iter().find(|(header, _)| *header == name);
        found.map(|(_, value)| value.as_bytes())
    };
    let body = request.body.map(|value| value.map(str::to_owned));
    identify(policy, tenant, model, header, &body)
}

/// `expect` names what names the session, and how many values were unusable.
#[track_caller]
fn check(request: &Request, expect: (Option<&str>, u32)) {
    let found = identify_as(
        &policy(&["x-session-id", "x-second"], true),
        "t",
        "m",
        request,
    );
    let source = found.session.map(|(_, source)| source.as_str());
    assert_eq!((source, found.unusable), expect);
}

const NOTHING: [Option<&str>; 2] = [None, None];

#[test]
fn the_first_usable_value_names_the_session() {
    let all = Request {
        headers: &[("x-session-id", "a"), ("session_id", "b")],
        body: [Some("c"), Some("d")],
    };
    check(&all, (Some("header"), 0));
    check(
        &Request {
            headers: &[("session_id", "b")],
            ..all
        },
        (Some("agent"), 0),
    );
    check(
        &Request {
            headers: &[],
            ..all
        },
        (Some("body"), 0),
    );
    check(
        &Request {
            headers: &[],
            body: NOTHING,
        },
        (None, 0),
    );
    check(
        &Request {
            headers: &[("x-request-id", "r"), ("authorization", "k")],
            body: NOTHING,
        },
        (None, 0),
    );
    for name in AGENT_HEADERS {
        let headers: &'static [(&str, &str)] = Box::leak(Box::new([(name, "s")]));
        check(
            &Request {
                headers,
                body: NOTHING,
            },
            (Some("agent"), 0),
        );
    }
}

#[test]
fn empty_and_over_long_values_count_as_absent() {
    let long = |length: usize| -> &'static str { Box::leak("x".repeat(length).into_boxed_str()) };
    let request = |value| {
        let headers: &'static [(&str, &str)] = Box::leak(Box::new([("x-session-id", value)]));
        Request {
            headers,
            body: [None, Some("u")],
        }
    };
    check(&request(""), (Some("body"), 1));
    check(&request(" \t"), (Some("body"), 1));
    check(&request(long(SESSION_VALUE_BYTES_MAX)), (Some("header"), 0));
    check(
        &request(long(SESSION_VALUE_BYTES_MAX + 1)),
        (Some("body"), 1),
    );
    check(
        &Request {
            headers: &[("x-session-id", "")],
            body: [Some(""), None],
        },
        (None, 2),
    );
}

#[test]
fn a_policy_may_leave_agents_marks_out() {
    let request = Request {
        headers: &[("x-claude-code-session-id", "s")],
        body: NOTHING,
    };
    let found = identify_as(&policy(&[], false), "t", "m", &request);
    assert_eq!(found.session, None);
}

#[test]
fn a_key_counts_within_its_tenant_model_and_source() {
    let policy = policy(&["x-session-id", "x-second"], true);
    let header = Request {
        headers: &[("x-session-id", "s")],
        body: NOTHING,
    };
    let keys = [
        identify_as(&policy, "t", "m", &header),
        identify_as(&policy, "t2", "m", &header),
        identify_as(&policy, "t", "m2", &header),
        identify_as(
            &policy,
            "t",
            "m",
            &Request {
                headers: &[("x-second", "s")],
                body: NOTHING,
            },
        ),
        identify_as(
            &policy,
            "t",
            "m",
            &Request {
                headers: &[("session-id", "s")],
                body: NOTHING,
            },
        ),
        identify_as(
            &policy,
            "t",
            "m",
            &Request {
                headers: &[],
                body: [Some("s"), None],
            },
        ),
        identify_as(
            &policy,
            "t",
            "m",
            &Request {
                headers: &[],
                body: [None, Some("s")],
            },
        ),
    ]
    .map(|found| found.session.unwrap().0);
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "key {index} is there twice");
    }
    assert_eq!(
        identify_as(&policy, "t", "m", &header).session.unwrap().0,
        keys[0]
    );
}

#[test]
fn rc_070_a_key_that_begins_like_another_is_another() {
    let policy = policy(&["x-session-id"], true);
    let key = |headers| {
        let request = Request {
            headers,
            body: NOTHING,
        };
        identify_as(&policy, "", "m", &request).session.unwrap().0
    };
    assert_ne!(
        key(&[("x-session-id", "team-1")]),
        key(&[("x-session-id", "team-12")])
    );
}
