use proptest::prelude::*;

use super::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn greedy() -> SamplingParams {
    SamplingParams {
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        seed: 0,
    }
}

fn nothing() -> History<'static> {
    History {
        prompt: &[],
        output: &[],
        banned: &[],
        forced: None,
        logprobs: None,
    }
}

/// The token chosen, or none.
fn choose(logits: &[f32], params: &SamplingParams, history: History<'_>) -> Option<u32> {
    Sampler::default()
        .choose(logits, params, history)
        .ok()
        .map(|choice| choice.token)
}

#[track_caller]
fn check_greedy(logits: &[f32], expect: Option<u32>) {
    assert_eq!(choose(logits, &greedy(), nothing()), expect);
    // Whatever may be drawn at all is drawn from the same tokens.
    let drawn = choose(
        logits,
        &SamplingParams {
            temperature: 1.0,
            ..greedy()
        },
        nothing(),
    );
    assert_eq!(drawn.is_some(), expect.is_some());
    assert_eq!(choose(logits, &cut(1.0, 0.0, 1, 1.0), nothing()), expect);
}

#[test]
fn the_likeliest_is_chosen_and_the_lower_id_of_equals() {
    check_greedy(&[0.0, 2.0, 1.0], Some(1));
    check_greedy(&[1.0, 3.0, 3.0, 3.0], Some(1));
    check_greedy(&[-5.0], Some(0));
    check_greedy(&[-0.0, 0.0], Some(0));
}

#[test]
fn numbers_that_are_none_are_never_chosen() {
    check_greedy(&[NAN, 1.0, NAN], Some(1));
    check_greedy(&[-INF, NAN, -1e30], Some(2));
    check_greedy(&[0.0, INF, INF], Some(1));
    check_greedy(&[f32::MIN, f32::MIN], Some(0));
    check_greedy(&[NAN, -INF], None);
    check_greedy(&[], None);
}

#[test]
fn a_forced_token_is_chosen_whatever_speaks_against_it() {
    let forced = |id| History {
        forced: Some(id),
        banned: &[1],
        logprobs: Some(1),
        ..nothing()
    };
    for params in [
        greedy(),
        SamplingParams {
            temperature: 1.0,
            ..greedy()
        },
    ] {
        let choice = Sampler::default()
            .choose(&[3.0, 1.0, 2.0], &params, forced(1))
            .unwrap();
        // Its probability is the one that the model gave it.
        assert_eq!(choice.token, 1);
        assert!((choice.logprob.unwrap() + 2.407_606).abs() < 1e-5);
        assert_eq!(choice.top[0].0, 0);
    }
    assert_eq!(choose(&[3.0, 2.0], &greedy(), forced(7)), Some(0));
}

#[test]
fn a_banned_token_is_never_chosen() {
    let banned = |banned| History {
        banned,
        ..nothing()
    };
    assert_eq!(choose(&[3.0, 2.0, 1.0], &greedy(), banned(&[0])), Some(1));
    assert_eq!(
        choose(&[3.0, 2.0, 1.0], &greedy(), banned(&[0, 1, 77])),
        Some(2)
    );
    assert_eq!(choose(&[3.0], &greedy(), banned(&[0])), None);
}

/// Greedy over `logits` after penalties; `expect` is the token that wins.
#[track_caller]
fn check_penalty(
    (repetition, presence, frequency): (f32, f32, f32),
    prompt: &[u32],
    output: &[u32],
    logits: &[f32],
    expect: u32,
) {
    let params = SamplingParams {
        repetition_penalty: repetition,
        presence_penalty: presence,
        frequency_penalty: frequency,
        ..greedy()
    };
    let history = History {
        prompt,
        output,
        ..nothing()
    };
    let mut sampler = Sampler::default();
    for _ in 0..2 {
        // The second time shows that the first left nothing behind.
        assert_eq!(
            sampler.choose(logits, &params, history).unwrap().token,
            expect
        );
    }
}

#[test]
fn penalties_are_those_of_hugging_face_and_openai() {
    // Repetition divides once, however often the token was seen, in the prompt too.
    check_penalty((2.0, 0.0, 0.0), &[0], &[], &[4.0, 1.9], 0);
    check_penalty((2.0, 0.0, 0.0), &[0, 0], &[0, 0], &[4.0, 1.9], 0);
    check_penalty((2.0, 0.0, 0.0), &[0], &[], &[4.0, 2.1], 1);
    // A negative logit is multiplied, so it falls as well.
    check_penalty((2.0, 0.0, 0.0), &[0], &[], &[-1.0, -1.9], 1);
    check_penalty((2.0, 0.0, 0.0), &[0], &[], &[-1.0, -2.1], 0);
    // Below 1 it rewards.
    check_penalty((0.5, 0.0, 0.0), &[1], &[], &[3.0, 2.0], 1);
    // Presence once, for the output only.
    check_penalty((1.0, 1.0, 0.0), &[0], &[], &[3.0, 2.5], 0);
    check_penalty((1.0, 1.0, 0.0), &[], &[0, 0, 0], &[3.0, 2.1], 1);
    check_penalty((1.0, 1.0, 0.0), &[], &[0, 0, 0], &[3.0, 1.9], 0);
    // Frequency for each occurrence in the output.
    check_penalty((1.0, 0.0, 1.0), &[0, 0], &[0], &[3.0, 1.9], 0);
    check_penalty((1.0, 0.0, 1.0), &[], &[0, 0], &[3.0, 1.9], 1);
    check_penalty((1.0, 0.0, -1.0), &[], &[1, 1], &[3.0, 1.9], 1);
    // Repetition first, then the others: 4/2 − 1 = 1.
    check_penalty((2.0, 1.0, 0.0), &[], &[0], &[4.0, 1.1], 1);
    check_penalty((2.0, 1.0, 0.0), &[], &[0], &[4.0, 0.9], 0);
    // Tokens beyond the row are passed over.
    check_penalty((2.0, 1.0, 1.0), &[9], &[9], &[1.0, 0.5], 0);
}

/// The tokens that are ever drawn from weights 8 : 4 : 2 : 1 (ids 3, 1, 2, 0) at temperature 1.
#[track_caller]
fn check_kept(params: SamplingParams, expect: &[u32]) {
    let logits = [1f32, 4.0, 2.0, 8.0].map(f32::ln);
    let mut sampler = Sampler::default();
    let mut drawn: Vec<u32> = (0..500)
        .map(|seed| SamplingParams {
            seed,
            ..params.clone()
        })
        .map(|params| sampler.choose(&logits, &params, nothing()).unwrap().token)
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn, expect);
}

/// `(temperature, min_p, top_k, top_p)`
fn cut(temperature: f32, min_p: f32, top_k: u32, top_p: f32) -> SamplingParams {
    SamplingParams {
        temperature,
        min_p,
        top_k,
        top_p,
        ..greedy()
    }
}

#[test]
fn cut_offs_keep_the_likeliest() {
    check_kept(cut(1.0, 0.0, 0, 1.0), &[0, 1, 2, 3]);
    check_kept(cut(1.0, 0.0, 2, 1.0), &[1, 3]);
    check_kept(cut(1.0, 0.0, 9, 1.0), &[0, 1, 2, 3]);
    check_kept(cut(1.0, 0.0, 0, 0.5), &[3]);
    check_kept(cut(1.0, 0.0, 0, 0.6), &[1, 3]);
    check_kept(cut(1.0, 0.0, 0, 0.0), &[3]);
    check_kept(cut(1.0, 0.4, 0, 1.0), &[1, 3]);
    check_kept(cut(1.0, 1.0, 0, 1.0), &[3]);
    // The nucleus is a share of what top-k and min-p have left: 8/12 is enough for 0.6.
    check_kept(cut(1.0, 0.0, 2, 0.6), &[3]);
    check_kept(cut(1.0, 0.4, 0, 0.6), &[3]);
    // Temperature comes before min-p: at 0.5 the weights are 64 : 16 : 4 : 1.
    check_kept(cut(0.5, 0.2, 0, 1.0), &[1, 3]);
    check_kept(cut(0.5, 0.3, 0, 1.0), &[3]);
}

#[test]
fn draws_follow_the_probabilities() {
    let logits = [1f32, 4.0, 2.0, 8.0].map(f32::ln);
    let params = SamplingParams {
        temperature: 1.0,
        seed: 7,
        ..greedy()
    };
    let mut counts = [0u32; 4];
    let mut sampler = Sampler::default();
    let prompt = vec![0; 15_000];
    for position in 0..prompt.len() {
        let history = History {
            prompt: &prompt[..position],
            ..nothing()
        };
        counts[sampler.choose(&logits, &params, history).unwrap().token as usize] += 1;
    }
    for (count, expect) in counts.iter().zip([1000, 4000, 2000, 8000]) {
        assert!(count.abs_diff(expect) < 250, "{counts:?}");
    }
}

#[test]
fn log_probabilities_are_of_the_raw_logits() {
    let logits = [1f32, 4.0, 2.0, 1.0, NAN].map(f32::ln);
    let params = SamplingParams {
        presence_penalty: 2.0,
        ..greedy()
    };
    let history = History {
        output: &[1],
        banned: &[2],
        logprobs: Some(2),
        ..nothing()
    };
    let choice = Sampler::default()
        .choose(&logits, &params, history)
        .unwrap();
    assert_eq!(choice.token, 0);
    let close = |got: f32, probability: f32| (got - probability.ln()).abs() < 1e-6;
    assert!(close(choice.logprob.unwrap(), 0.125));
    assert_eq!(
        choice.top.iter().map(|&(id, _)| id).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(close(choice.top[0].1, 0.5) && close(choice.top[1].1, 0.25));

    let only_chosen = History {
        logprobs: Some(0),
        ..nothing()
    };
    let choice = Sampler::default()
        .choose(&logits, &greedy(), only_chosen)
        .unwrap();
    assert!(choice.logprob.is_some() && choice.top.is_empty());
    let choice = Sampler::default()
        .choose(&logits, &greedy(), nothing())
        .unwrap();
    assert_eq!(choice.logprob, None);
}

/// The obvious way: sort everything, then cut.
fn reference(logits: &[f32], params: &SamplingParams, position: usize) -> Option<u32> {
    let mut sorted: Vec<(u32, f32)> = (0..)
        .zip(logits)
        .map(|(id, &l)| (id, l))
        .filter(|(_, l)| *l > f32::NEG_INFINITY)
        .collect();
    sorted.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
    let &(best, max) = sorted.first()?;
    if params.temperature == 0.0 {
        return Some(best);
    }
    let weight = |l: f32| f64::from(((l - max) / params.temperature).exp());
    let mut kept: Vec<(u32, f64)> = sorted.iter().map(|&(id, l)| (id, weight(l))).collect();
    kept.retain(|&(_, w)| w > 0.0 && w >= f64::from(params.min_p));
    if params.top_k > 0 {
        kept.truncate(params.top_k as usize);
    }
    let sum = |kept: &[(u32, f64)]| -> f64 {
        let mut by_id = kept.to_vec();
        by_id.sort_by_key(|&(id, _)| id);
        by_id.iter().map(|&(_, w)| w).sum()
    };
    if params.top_p < 1.0 {
        let enough = f64::from(params.top_p) * sum(&kept);
        let mut reached = 0.0;
        let nucleus = kept.iter().position(|&(_, w)| {
            reached += w;
            reached >= enough
        });
        kept.truncate(nucleus.map_or(kept.len(), |last| last + 1));
    }
    let point = random::uniform(params.seed, position as u64) * sum(&kept);
    kept.sort_by_key(|&(id, _)| id);
    let mut reached = 0.0;
    kept.iter()
        .find(|&&(_, w)| {
            reached += w;
            reached > point
        })
        .or(kept.last())
        .map(|&(id, _)| id)
}

/// Few values, so that ties are common, and now and then one that is no number.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    let few = prop_oneof![
        8 => prop::sample::select(vec![-3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0]),
        4 => -8.0f32..8.0,
        1 => prop::sample::select(vec![NAN, -INF, INF, f32::MAX, f32::MIN]),
    ];
    prop::collection::vec(few, 1..300)
}

fn params() -> impl Strategy<Value = SamplingParams> {
    let temperature = prop::sample::select(vec![0.0f32, 0.01, 0.5, 1.0, 2.0]);
    let top_p = prop_oneof![Just(1.0f32), 0.0f32..1.0];
    let top_k = prop_oneof![Just(0u32), 1..300u32];
    let min_p = prop_oneof![Just(0.0f32), Just(1.0f32), 0.0f32..1.0];
    (temperature, top_p, top_k, min_p, any::<u64>()).prop_map(
        |(temperature, top_p, top_k, min_p, seed)| SamplingParams {
            temperature,
            top_p,
            top_k,
            min_p,
            seed,
            ..greedy()
        },
    )
}

proptest! {
    #[test]
    fn choices_are_those_of_sorting_everything(
        logits in logits(), params in params(), position in 0..1000usize,
    ) {
        let prompt = vec![0; position];
        let history = History { prompt: &prompt, ..nothing() };
        let clean: Vec<f32> = logits.iter().map(|&l| usable(l)).collect();
        prop_assert_eq!(choose(&logits, &params, history), reference(&clean, &params, position));
    }

    #[test]
    fn a_used_sampler_chooses_as_a_fresh_one(
        rows in prop::collection::vec((logits(), params()), 1..5),
        output in prop::collection::vec(0..20u32, 0..30),
        repetition_penalty in 0.5f32..2.0, frequency_penalty in -2.0f32..2.0,
    ) {
        let history = History { output: &output, ..nothing() };
        let mut used = Sampler::default();
        for (logits, params) in rows {
            let params = SamplingParams { repetition_penalty, frequency_penalty, ..params };
            let fresh = Sampler::default().choose(&logits, &params, history);
            prop_assert_eq!(used.choose(&logits, &params, history), fresh);
        }
    }
}
