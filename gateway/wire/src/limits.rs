//! The bounds of the wire, each with its unit. A reader or writer of this crate refuses what lies past them.

/// Largest request body that a shell should read, in bytes, unless its own configuration says otherwise.
/// About 16 M tokens of English text, or a dozen large images in base64.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Deepest nesting of objects and arrays in a JSON text, in levels. Tool schemas seen in the wild stay under 30.
pub const JSON_DEPTH_MAX: u32 = 128;

/// Most elements of `messages` in one request. Long agent runs reach a few thousand.
pub const MESSAGES_MAX: usize = 16_384;

/// Most JSON paths that one scan can look for (they are tracked in one 64-bit mask).
pub const WANTED_PATHS_MAX: usize = 64;

/// Most segments of one JSON path, in names between dots.
pub const PATH_SEGMENTS_MAX: usize = 8;

/// Largest server-sent event, in bytes of the stream including its field names and line ends.
/// An event carries one delta; a whole tool call with a file in it stays far below.
pub const SSE_EVENT_BYTES_MAX: usize = 1 << 20;
