//! Writes small GGUF files for tests, independently of the reader.

/// Experts of a layer of `Writer::tiny("qwen3moe")`; two are chosen.
pub(crate) const TINY_EXPERTS: u32 = 3;

/// A metadata value as the writer takes it.
#[derive(Clone, Debug)]
pub(crate) enum Put {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
    U16(u16),
}

/// A GGUF file in the making.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) version: u32,
    pub(crate) metadata: Vec<(String, Put)>,
    /// Name, dimensions innermost first, type number, data.
    pub(crate) tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
    pub(crate) alignment: usize,
}

impl Writer {
    /// An empty file.
    pub(crate) fn new() -> Self {
        Self {
            version: 3,
            metadata: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
        }
    }

    /// A whole two-layer model with a byte vocabulary, tensors all `kind` but for the norms.
    pub(crate) fn tiny(arch: &str) -> Self {
        let (vocab, hidden, heads, kv_heads, head_dim, inner) = (260, 64, 4, 2, 16, 96);
        let mut file = Self::new();
        file.put("general.architecture", Put::Text(arch.to_owned()));
        let sizes = [
            ("block_count", 2),
            ("embedding_length", hidden),
            ("feed_forward_length", inner),
            ("context_length", 128),
            ("attention.head_count", heads),
            ("attention.head_count_kv", kv_heads),
            ("attention.key_length", head_dim),
            ("rope.dimension_count", head_dim),
        ];
        for (key, value) in sizes {
            file.put(&format!("{arch}.{key}"), Put::U32(value));
        }
        file.put(
            &format!("{arch}.attention.layer_norm_rms_epsilon"),
            Put::F32(1e-5),
        );
        file.put(&format!("{arch}.rope.freq_base"), Put::F32(50_000.0));
        if arch == "qwen3moe" {
            file.put("qwen3moe.expert_count", Put::U32(TINY_EXPERTS));
            file.put("qwen3moe.expert_used_count", Put::U32(2));
            file.put("qwen3moe.expert_feed_forward_length", Put::U32(32));
        }
        file.put_vocab();
        let (q, kv) = (heads * head_dim, kv_heads * head_dim);
        file.matrix("token_embd.weight", vocab, hidden);
        file.vector("output_norm.weight", hidden);
        for layer in 0..2 {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            file.vector(&name("attn_norm"), hidden);
            file.vector(&name("ffn_norm"), hidden);
            file.matrix(&name("attn_q"), q, hidden);
            file.matrix(&name("attn_k"), kv, hidden);
            file.matrix(&name("attn_v"), kv, hidden);
            file.matrix(&name("attn_output"), hidden, q);
            if arch == "qwen3moe" {
                file.matrix(&name("ffn_gate_inp"), TINY_EXPERTS, hidden);
                file.stack(&name("ffn_gate_exps"), 32, hidden);
                file.stack(&name("ffn_up_exps"), 32, hidden);
                file.stack(&name("ffn_down_exps"), hidden, 32);
            } else {
                file.matrix(&name("ffn_gate"), inner, hidden);
                file.matrix(&name("ffn_up"), inner, hidden);
                file.matrix(&name("ffn_down"), hidden, inner);
            }
            if arch != "llama" {
                file.vector(&name("attn_q_norm"), head_dim);
                file.vector(&name("attn_k_norm"), head_dim);
            }
        }
        file
    }

    /// Bytes, two merges, two control tokens and one user-defined, and a template.
    fn put_vocab(&mut self) {
        let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        let mut tokens: Vec<String> = alphabet.iter().map(|c| c.to_string()).collect();
        tokens.sort_unstable();
        let mut types = vec![1; tokens.len()];
        for (text, kind) in [
            ("<|im_start|>", 3),
            ("<|im_end|>", 3),
            ("<think>", 4),
            ("Ġt", 1),
        ] {
            tokens.push(text.to_owned());
            types.push(kind);
        }
        self.put("tokenizer.ggml.model", Put::Text("gpt2".to_owned()));
        self.put("tokenizer.ggml.pre", Put::Text("qwen2".to_owned()));
        self.put("tokenizer.ggml.tokens", Put::Texts(tokens));
        self.put("tokenizer.ggml.token_type", Put::I32s(types));
        self.put("tokenizer.ggml.merges", Put::Texts(vec!["Ġ t".to_owned()]));
        self.put("tokenizer.ggml.eos_token_id", Put::U32(257));
        let template = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";
        self.put("tokenizer.chat_template", Put::Text(template.to_owned()));
    }

    /// Adds or replaces a key.
    pub(crate) fn put(&mut self, key: &str, value: Put) {
        match self.metadata.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
    }

    /// Takes a key out.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(known, _)| known != key);
        self
    }

    /// `put` for chains.
    pub(crate) fn with(mut self, key: &str, value: Put) -> Self {
        self.put(key, value);
        self
    }

    fn vector(&mut self, name: &str, len: u32) {
        let data = (0..len).flat_map(|i| (i as f32).to_le_bytes()).collect();
        self.tensors
            .push((name.to_owned(), vec![len.into()], 0, data));
    }

    /// A Q8_0 matrix whose bytes tell where they are.
    fn matrix(&mut self, name: &str, rows: u32, cols: u32) {
        let bytes = rows as usize * cols as usize / 32 * 34;
        let data = (0..bytes).map(|i| (i % 251) as u8).collect();
        self.tensors
            .push((name.to_owned(), vec![cols.into(), rows.into()], 8, data));
    }

    /// The matrices of `TINY_EXPERTS` experts one after the other.
    fn stack(&mut self, name: &str, rows: u32, cols: u32) {
        self.matrix(name, TINY_EXPERTS * rows, cols);
        if let Some((_, dims, ..)) = self.tensors.last_mut() {
            *dims = vec![cols.into(), rows.into(), TINY_EXPERTS.into()];
        }
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            text(&mut out, key);
            write_value(&mut out, value);
        }
        let mut offset = 0;
        for (name, dims, kind, data) in &self.tensors {
            text(&mut out, name);
            out.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            out.extend((offset as u64).to_le_bytes());
            offset = (offset + data.len()).next_multiple_of(self.alignment);
        }
        for (_, _, _, data) in &self.tensors {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(data);
        }
        out
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn write_value(out: &mut Vec<u8>, value: &Put) {
    let kind = |out: &mut Vec<u8>, kind: u32| out.extend(kind.to_le_bytes());
    match value {
        Put::U16(x) => {
            kind(out, 2);
            out.extend(x.to_le_bytes());
        }
        Put::U32(x) => {
            kind(out, 4);
            out.extend(x.to_le_bytes());
        }
        Put::F32(x) => {
            kind(out, 6);
            out.extend(x.to_le_bytes());
        }
        Put::Bool(x) => {
            kind(out, 7);
            out.push(u8::from(*x));
        }
        Put::Text(x) => {
            kind(out, 8);
            text(out, x);
        }
        Put::Texts(xs) => {
            kind(out, 9);
            kind(out, 8);
            out.extend((xs.len() as u64).to_le_bytes());
            xs.iter().for_each(|x| text(out, x));
        }
        Put::I32s(xs) => {
            kind(out, 9);
            kind(out, 5);
            out.extend((xs.len() as u64).to_le_bytes());
            xs.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
    }
}
