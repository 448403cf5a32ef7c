//! Checks a condition before it meets a request: CEL itself finds a wrong name or type only when it comes to it.

use std::collections::BTreeSet;

use cel::common::ast::{
    CallExpr, Expr, IdedExpr, ListExpr, LiteralValue, SourceInfo, operators as op,
};
use cel::{ParseError, Program};

use crate::nearest::nearest;

/// Deepest nesting of a condition: it is worked out by recursion.
const DEPTH_MAX: usize = 48;

/// Names under `request`, with their types.
const FIELDS: [(&str, Type); 8] = [
    ("model", Type::Text),
    ("stream", Type::Bool),
    ("prompt_tokens", Type::Int),
    ("max_tokens", Type::Int),
    ("messages", Type::Int),
    ("has_tools", Type::Bool),
    ("session", Type::Bool),
    ("header", Type::Headers),
];

/// The name beside `request`: how much thinking the turn is worth.
const DIFFICULTY: &str = "difficulty";

/// Functions that a condition may call.
const FUNCTIONS: [&str; 4] = ["startsWith", "endsWith", "contains", "size"];

/// One thing wrong with a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The byte of the condition that it is about.
    pub(crate) at: usize,
    /// What is wrong and what is expected, to be put after the key's name.
    pub(crate) message: String,
}

impl Fault {
    /// Of what CEL's parser says, which counts lines and columns from 1.
    pub(super) fn of(error: &ParseError, source: &str) -> Self {
        let from_one = |place: isize| usize::try_from(place).unwrap_or(1).max(1) - 1;
        let (line, column) = (from_one(error.pos.0), from_one(error.pos.1));
        let before = source.split_inclusive('\n').take(line).map(str::len);
        let at = before.sum::<usize>() + column;
        let said = error.msg.strip_prefix("Syntax error: ");
        let said = said.unwrap_or(&error.msg);
        // What follows lists every token that there is.
        let said = said.split(" expecting {").next().unwrap_or(said);
        Self {
            at: at.min(source.len()),
            message: format!("is no CEL expression: {said}"),
        }
    }
}

/// What an expression comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Decimal,
    Text,
    List(Element),
    Headers,
    Request,
}

/// What a list holds; an empty one holds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Any,
    Bool,
    Int,
    Text,
}

impl Type {
    fn words(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int => "a whole number",
            Self::Decimal => "a number with a point",
            Self::Text => "a text",
            Self::List(_) => "a list",
            Self::Headers => "all headers",
            Self::Request => "the whole request",
        }
    }

    fn element(self) -> Option<Element> {
        match self {
            Self::Bool => Some(Element::Bool),
            Self::Int => Some(Element::Int),
            Self::Text => Some(Element::Text),
            Self::Decimal | Self::List(_) | Self::Headers | Self::Request => None,
        }
    }
}

/// What a sound condition needs of a request.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The headers that it mentions.
    pub(super) headers: BTreeSet<String>,
    /// Whether it asks how difficult the turn is.
    pub(super) difficulty: bool,
}

/// What the program needs, where it is sound.
pub(super) fn check(program: &Program) -> Result<Needs, Vec<Fault>> {
    let mut checker = Checker {
        places: program.source_info(),
        faults: Vec::new(),
        needs: Needs::default(),
    };
    let whole = program.expression();
    if let Some(found) = checker.kind(whole, 0) {
        checker.expect(whole, found, Type::Bool, "the condition");
    }
    if checker.faults.is_empty() {
        Ok(checker.needs)
    } else {
        Err(checker.faults)
    }
}

struct Checker<'p> {
    places: &'p SourceInfo,
    faults: Vec<Fault>,
    needs: Needs,
}

impl Checker<'_> {
    fn fault(&mut self, expr: &IdedExpr, message: String) {
        let at = self
            .places
            .offset_for(expr.id)
            .map_or(0, |(start, _)| start);
        let at = usize::try_from(at).unwrap_or(0);
        self.faults.push(Fault { at, message });
    }

    /// The type of an expression; `None` where something in it is wrong, which has been said.
    fn kind(&mut self, expr: &IdedExpr, depth: usize) -> Option<Type> {
        if depth > DEPTH_MAX {
            self.fault(
                expr,
                format!("nests more than {DEPTH_MAX} deep; split it into several rules"),
            );
            return None;
        }
        let wrong = match &expr.expr {
            Expr::Literal(LiteralValue::Boolean(_)) => return Some(Type::Bool),
            Expr::Literal(LiteralValue::Int(_)) => return Some(Type::Int),
            Expr::Literal(LiteralValue::String(_)) => return Some(Type::Text),
            Expr::Literal(LiteralValue::Double(_)) => return Some(Type::Decimal),
            Expr::Literal(_) => "has a value of a kind that no request has; expected `true`, `false`, a whole number or a text in quotes".to_owned(),
            Expr::Ident(name) if name == "request" => return Some(Type::Request),
            Expr::Ident(name) if name == DIFFICULTY => {
                self.needs.difficulty = true;
                return Some(Type::Decimal);
            }
            Expr::Ident(name) => unknown_name(name),
            Expr::Select(select) if !select.test => {
                let found = self.kind(&select.operand, depth + 1)?;
                match found {
                    Type::Request => match FIELDS.iter().find(|(name, _)| *name == select.field) {
                        Some((_, kind)) => return Some(*kind),
                        None => unknown_field(&select.field),
                    },
                    Type::Headers => format!("reads a header with a dot; expected `request.header[\"{}\"]`", select.field),
                    found => format!("looks for `{}` in {}", select.field, found.words()),
                }
            }
            Expr::Call(call) => return self.call(expr, call, depth + 1),
            Expr::List(list) => return self.list(expr, list, depth + 1),
            Expr::Select(_) => "asks with `has`, but every name is always there; a header that the request lacks is `\"\"`".to_owned(),
            _ => "has a loop, a map or a message, which conditions do not take; compare, combine with `&&`, `||`, `!`, or look in a list with `in`".to_owned(),
        };
        self.fault(expr, wrong);
        None
    }

    fn list(&mut self, expr: &IdedExpr, list: &ListExpr, depth: usize) -> Option<Type> {
        let mut of = Element::Any;
        for element in &list.elements {
            let found = self.kind(element, depth)?;
            match found.element() {
                Some(kind) if of == Element::Any || of == kind => of = kind,
                _ => {
                    self.fault(
                        expr,
                        format!(
                            "has {} in a list of something else; expected all alike",
                            found.words()
                        ),
                    );
                    return None;
                }
            }
        }
        Some(Type::List(of))
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr, depth: usize) -> Option<Type> {
        if call.func_name == op::INDEX {
            return self.header(expr, call, depth);
        }
        let mut arguments = Vec::new();
        let mut sound = true;
        for argument in call.target.as_deref().into_iter().chain(&call.args) {
            let kind = self.kind(argument, depth);
            sound &= kind.is_some();
            arguments.extend(kind.map(|kind| (argument, kind)));
        }
        let name = call.func_name.as_str();
        let known = operator(name).is_some() || FUNCTIONS.contains(&name);
        if !known {
            self.fault(expr, unknown_function(name));
            return None;
        }
        if !sound {
            return None;
        }
        let shown = operator(name).unwrap_or(name);
        let (each, result) = match name {
            op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT => (Type::Bool, Type::Bool),
            op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO | op::NEGATE => {
                (Type::Int, Type::Int)
            }
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
                let decimal = arguments.iter().any(|(_, kind)| *kind == Type::Decimal);
                let each = if decimal { Type::Decimal } else { Type::Int };
                (each, Type::Bool)
            }
            _ => return self.other(expr, call, &arguments),
        };
        for (argument, found) in arguments {
            sound &= self.expect(argument, found, each, &format!("what `{shown}` takes"));
        }
        sound.then_some(result)
    }

    /// Calls whose arguments depend on each other.
    fn other(
        &mut self,
        expr: &IdedExpr,
        call: &CallExpr,
        arguments: &[(&IdedExpr, Type)],
    ) -> Option<Type> {
        let kinds: Vec<Type> = arguments.iter().map(|(_, kind)| *kind).collect();
        let member = call.target.is_some();
        let (result, expected) = match (call.func_name.as_str(), kinds.as_slice()) {
            (op::EQUALS | op::NOT_EQUALS, [a, b]) => (
                (a == b && a.element().is_some()).then_some(Type::Bool),
                "two texts, two whole numbers, or two that are true or false",
            ),
            (op::IN, [a, Type::List(of)]) => (
                (*of == Element::Any || a.element() == Some(*of)).then_some(Type::Bool),
                "something and a list of its like",
            ),
            (op::CONDITIONAL, [Type::Bool, a, b]) => (
                (a == b && a.element().is_some()).then_some(*a),
                "a condition and two of one kind",
            ),
            ("startsWith" | "endsWith" | "contains", [Type::Text, Type::Text]) if member => {
                (Some(Type::Bool), "")
            }
            ("size", [Type::Text]) if !member => (Some(Type::Int), ""),
            (op::IN, _) => (
                None,
                "something and a list, as in `request.model in [\"a\", \"b\"]`",
            ),
            (op::CONDITIONAL, _) => (None, "a condition and two of one kind"),
            ("size", _) => (None, "one text, as in `size(request.model)`"),
            _ => (
                None,
                "a call on a text with a text, as in `request.model.startsWith(\"a\")`",
            ),
        };
        if result.is_none() {
            let name = call.func_name.as_str();
            let shown = operator(name).unwrap_or(name);
            let words: Vec<&str> = kinds.iter().map(|kind| kind.words()).collect();
            self.fault(
                expr,
                format!(
                    "gives `{shown}` {}; expected {expected}",
                    words.join(" and ")
                ),
            );
        }
        result
    }

    /// `request.header["name"]`; the name is written out, so that only headers that rules mention are read.
    fn header(&mut self, expr: &IdedExpr, call: &CallExpr, depth: usize) -> Option<Type> {
        let [of, name] = call.args.as_slice() else {
            return None;
        };
        let of = self.kind(of, depth)?;
        let name = match &name.expr {
            Expr::Literal(LiteralValue::String(name)) => name.inner(),
            _ => "",
        };
        let is_token = |b: u8| b.is_ascii_graphic() && !b.is_ascii_uppercase();
        if of != Type::Headers || name.is_empty() || !name.bytes().all(is_token) {
            let message = "uses `[…]` on something else than `request.header`, or with something else than a header's name; expected a lower-case name in quotes, as in `request.header[\"x-team\"]`";
            self.fault(expr, message.to_owned());
            return None;
        }
        self.needs.headers.insert(name.to_owned());
        Some(Type::Text)
    }

    fn expect(&mut self, expr: &IdedExpr, found: Type, expected: Type, what: &str) -> bool {
        if found != expected {
            let (found, expected) = (found.words(), expected.words());
            self.fault(expr, format!("has {found} as {what}; expected {expected}"));
        }
        found == expected
    }
}

/// An operator as it is written; `None` for a function, and for operators that conditions do not take.
fn operator(name: &str) -> Option<&'static str> {
    Some(match name {
        op::LOGICAL_AND => "&&",
        op::LOGICAL_OR => "||",
        op::LOGICAL_NOT => "!",
        op::ADD => "+",
        op::SUBSTRACT | op::NEGATE => "-",
        op::MULTIPLY => "*",
        op::DIVIDE => "/",
        op::MODULO => "%",
        op::LESS => "<",
        op::LESS_EQUALS => "<=",
        op::GREATER => ">",
        op::GREATER_EQUALS => ">=",
        op::EQUALS => "==",
        op::NOT_EQUALS => "!=",
        op::IN => "in",
        op::CONDITIONAL => "?:",
        _ => return None,
    })
}

fn unknown_name(name: &str) -> String {
    let names = FIELDS.map(|(name, _)| name);
    match nearest(name, &names) {
        _ if nearest(name, &["request"]).is_some() => {
            format!("has an unknown name `{name}`; did you mean `request`?")
        }
        _ if nearest(name, &[DIFFICULTY]).is_some() => {
            format!("has an unknown name `{name}`; did you mean `{DIFFICULTY}`?")
        }
        Some(near) => format!("has an unknown name `{name}`; did you mean `request.{near}`?"),
        None => format!(
            "has an unknown name `{name}`; expected `{DIFFICULTY}` or one of `request.{}`",
            names.join("`, `request.")
        ),
    }
}

fn unknown_field(name: &str) -> String {
    let names = FIELDS.map(|(name, _)| name);
    match nearest(name, &names) {
        Some(near) => {
            format!("has an unknown name `request.{name}`; did you mean `request.{near}`?")
        }
        None => format!(
            "has an unknown name `request.{name}`; expected one of `request.{}`",
            names.join("`, `request.")
        ),
    }
}

fn unknown_function(name: &str) -> String {
    match nearest(name, &FUNCTIONS) {
        Some(near) => format!("calls an unknown function `{name}`; did you mean `{near}`?"),
        None => format!(
            "calls an unknown function `{name}`; expected one of `{}`",
            FUNCTIONS.join("`, `")
        ),
    }
}
