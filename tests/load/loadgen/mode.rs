//! What each mode sends.

use clap::ValueEnum;

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Many short questions, whole answers: what a request costs
    Small,
    /// The same on one connection: what latency an idle gateway adds
    SmallC1,
    /// Conversations of 256 KB that grow, whole answers: what a byte costs
    Large,
    /// Short questions, streamed answers without pause
    Stream,
    /// The same through more connections, for a mock that pauses between chunks: what a token costs as engines emit it
    Paced,
}

/// A mode's numbers.
pub(crate) struct Shape {
    /// Its name in the report and on the command line.
    pub(crate) name: &'static str,
    /// Connections, each with one request in flight.
    pub(crate) connections: u32,
    /// Bytes of a request's body, at its conversation's first turn.
    pub(crate) body_bytes: u32,
    /// Whether answers are streamed.
    pub(crate) stream: bool,
    /// Whether each connection holds a conversation that grows, turn by turn.
    pub(crate) grows: bool,
}

impl Mode {
    /// The mode's numbers.
    pub(crate) fn shape(self) -> Shape {
        let short = |name, connections, stream| Shape {
            name,
            connections,
            body_bytes: 1_024,
            stream,
            grows: false,
        };
        match self {
            Self::Small => short("small", 32, false),
            Self::SmallC1 => short("small-c1", 1, false),
            Self::Large => Shape {
                name: "large",
                connections: 32,
                body_bytes: 256 * 1_024,
                stream: false,
                grows: true,
            },
            Self::Stream => short("stream", 32, true),
            Self::Paced => short("paced", 64, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;
    use clap::ValueEnum as _;

    #[test]
    fn the_report_and_the_command_line_call_a_mode_the_same() {
        for mode in Mode::value_variants() {
            let named = mode
                .to_possible_value()
                .map(|value| value.get_name().to_owned());
            assert_eq!(named.as_deref(), Some(mode.shape().name));
        }
    }
}
