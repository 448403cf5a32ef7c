use super::*;

fn families() -> Families {
    Families::built_in().unwrap()
}

#[test]
fn real_model_names_find_their_family() {
    // RC-154, and one name for each further family.
    for (model, expect) in [
        ("Qwen/Qwen3-4B-Thinking-2507", Some("qwen3-thinking-2507")),
        ("zai-org/GLM-4.5-Air", Some("glm-4.5")),
        ("deepseek-ai/DeepSeek-V3.2", Some("deepseek-v3.2")),
        ("Qwen/QwQ-32B", Some("qwq")),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", Some("nemotron-3")),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", Some("none")),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", Some("deepseek-r1")),
        ("MiniMaxAI/MiniMax-M3", Some("minimax-m3")),
        ("Qwen/Qwen3-0.6B", Some("qwen3")),
        ("Qwen/Qwen3-30B-A3B", Some("qwen3")),
        ("Qwen/Qwen3.5-4B", Some("qwen3.5")),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", Some("none")),
        ("deepseek-ai/DeepSeek-V3.1", Some("deepseek-v3.1")),
        ("openai/gpt-oss-20b", Some("gpt-oss")),
        ("moonshotai/Kimi-K2-Thinking", Some("kimi-k2-thinking")),
        ("zai-org/GLM-4.7", Some("glm-4.7")),
        ("MiniMaxAI/MiniMax-M2", Some("minimax-m2")),
        ("mistralai/Magistral-Small-2509", Some("magistral")),
        ("ibm-granite/granite-3.2-8b-instruct", Some("granite-3.2")),
        ("tencent/Hunyuan-A13B-Instruct", Some("hunyuan-a13b")),
        (
            "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
            Some("llama-nemotron"),
        ),
        ("LGAI-EXAONE/EXAONE-4.0-32B", Some("exaone-4")),
        ("LGAI-EXAONE/EXAONE-Deep-7.8B", Some("exaone-deep")),
        ("stepfun-ai/step3", Some("step3")),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", Some("seed-oss")),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", Some("ernie45")),
        (
            "CohereLabs/command-a-reasoning-08-2025",
            Some("cohere-command4"),
        ),
        ("allenai/Olmo-3-7B-Think", Some("olmo3")),
        ("microsoft/Phi-4-reasoning-plus", Some("phi-4-reasoning")),
        ("my-own-model", None),
        ("not-qwen3-8b", None),
    ] {
        let families = families();
        let found = families.of_model(model).map(|family| &*family.name);
        assert_eq!(found, expect, "{model}");
    }
}

#[test]
fn names_may_be_spelled_with_either_sign_and_an_unknown_one_lists_the_known() {
    let families = families();
    for name in ["deepseek_r1", "DeepSeek-R1", "deepseek-r1"] {
        assert_eq!(families.named(name).unwrap().name, "deepseek-r1");
    }
    // RC-160
    let error = families.named("qwen33").unwrap_err().to_string();
    assert!(
        error.contains("qwen33") && error.contains("qwen3,") && error.contains("gpt-oss"),
        "{error}"
    );
}

#[test]
fn a_wrong_file_is_refused_with_every_problem() {
    let text = "[[family]]\nname='a'\n[[family]]\nname='A'\ntags={open=[],close=['\\nx'],opener='model',thinking=true}\n";
    let text = text.replace("'\\nx'", "\"\\nx\"");
    let error = Families::parse(&text).unwrap_err().to_string();
    for part in ["`style`", "taken", "`open`", "newline"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(Families::parse("[[family]]\nname='a'\nstyle='none'\nmark=1").is_err());
}

#[test]
fn a_template_tells_its_family_by_all_of_its_marks() {
    let check = |template: &str, expect: Option<&str>| {
        let families = families();
        let found = families.of_template(template).map(|family| &*family.name);
        assert_eq!(found, expect, "{template}");
    };
    let qwen3 = r"{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}";
    check(qwen3, Some("qwen3"));
    check(&format!("{qwen3}<function="), Some("qwen3.5"));
    check(&qwen3.replace("enable_thinking", "x"), None);
    check(r"{{'<｜Assistant｜><think>\n'}}", Some("deepseek-r1"));
    check("<|channel|>analysis<|message|>", Some("gpt-oss"));
    check("[THINK]<seed:think>", Some("seed-oss"));
    check("", None);
}

#[test]
fn a_policys_own_families_come_first() {
    let text = "version = 1\n[[families]]\nname='house'\nmodels=['qwen3-*','m']\nswitch='think'\nstyle='channels'\n[[families]]\nname='QwQ'\nstyle='none'\n";
    let families = Families::with_policy(text).unwrap();
    let of = |model: &str| families.of_model(model).map(|family| &*family.name);
    assert_eq!(
        [of("m"), of("Qwen/Qwen3-8B"), of("QwQ-32B"), of("GLM-4.6")],
        [Some("house"), Some("house"), None, Some("glm-4.5")]
    );
    assert!(matches!(
        families.named("qwq").unwrap().grammar,
        Grammar::None
    ));
    assert_eq!(
        families
            .named("house")
            .unwrap()
            .switch
            .member(true)
            .as_deref(),
        Some("\"think\":true")
    );
    let error = Families::with_policy(&text.replace("'think'", "'a b'")).unwrap_err();
    assert!(error.to_string().contains("`house`: `switch`"), "{error}");
    assert!(Families::with_policy(&text.replace("models", "model")).is_err());
}

#[test]
fn rc_086_families_that_write_the_effort_first_are_known() {
    let families = Families::built_in().unwrap();
    let first = |model: &str| families.of_model(model).unwrap().effort_in_head;
    assert!(first("openai/gpt-oss-20b") && first("GLM-5.2") && first("deepseek-v4-pro"));
    assert!(!first("qwen3-8b") && !first("deepseek-v3.1"));
}
