//! Which check finds which planted bug. A bug that no check finds would tell that the checks are worth little.

use super::*;

/// Seeds of random order that each bug is tried with.
const SEEDS: std::ops::Range<u64> = 1..5;

#[test]
fn small_cases_equal_the_reference() {
    on_gpu("planted::small_cases_equal_the_reference", |gpu| {
        check_rows(gpu, 3, 33, 33, RowOp::RmsNorm);
        let mut random = Random(1);
        let case = Matmul {
            parts: vec![random.tensor(DType::Bf16, 33, 70, 1.0)],
            rows: 5,
            x: random.floats(5 * 70),
        };
        check(gpu, &case, "matmul");
        let case = Attention {
            shape: heads((2, 1, 6)),
            chunks: vec![[130, 3], [1, 1]],
            seed: 1,
        };
        check(gpu, &case, "attention");
    });
}

/// How a bug shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Wrong numbers with at least one seed.
    Values,
    /// AddressSanitizer names an access to memory that is not the kernel's.
    Address,
    /// ThreadSanitizer names a race.
    Race,
}

#[test]
fn planted_bugs_are_found() {
    use Shows::{Address, Race, Values};
    if cuda_sim::inside() {
        return;
    }
    if let Some(why) = cuda_sim::missing() {
        println!("skipped: {why}");
        return;
    }
    let expected = [
        ("NORM_NO_SYNC", vec![Values, Race]),
        ("NORM_PAST_END", vec![Address]),
        ("MATMUL_NO_SYNC", vec![Values, Race]),
        ("MATMUL_NO_SYNC_LOOP", vec![Race]),
        ("MATMUL_PAST_K", vec![Values]),
        ("ATTENTION_NO_SYNC_HIGHEST", vec![Race]),
        ("ATTENTION_NO_SYNC_WEIGHTS", vec![Values, Race]),
        ("ATTENTION_NO_SYNC_LOOP", vec![Race]),
        ("ATTENTION_PAST_POSITION", vec![Values]),
    ];
    let cache = tempfile::tempdir().unwrap();
    let mut missed = Vec::new();
    for (bug, ways) in expected {
        for way in ways {
            if !shows(way, bug, cache.path()) {
                missed.push(format!("{bug} does not show by {way:?}"));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

fn shows(way: Shows, bug: &str, cache: &std::path::Path) -> bool {
    let name = whole_of_small_cases();
    let run = |variant, order| {
        let run = Run {
            variant,
            order,
            bug: Some(bug),
        };
        run.test(&name, cache).unwrap()
    };
    match way {
        Shows::Values => SEEDS
            .map(|seed| run(Variant::Plain, Order::Random(seed)))
            .any(|outcome| !outcome.passed && outcome.text.contains("expected")),
        Shows::Address => {
            let outcome = run(Variant::Address, Order::Random(1));
            !outcome.passed && outcome.text.contains("AddressSanitizer")
        }
        Shows::Race => {
            // In order, so that the numbers come out right more often and the run goes on to the race.
            let outcome = run(Variant::Thread, Order::Forward);
            !outcome.passed && outcome.text.contains("data race") && outcome.text.contains(".cu:")
        }
    }
}

fn whole_of_small_cases() -> String {
    whole("planted::small_cases_equal_the_reference")
}
