//! Code that never runs on a target, because it is behind a condition whose value is known.

use oxc::{
    ast::{
        AstKind,
        ast::{BinaryExpression, Expression},
    },
    semantic::NodeId,
    span::{GetSpan as _, Span},
};

use crate::lint::{
    source::Source,
    target::{Target, built_ins::ES_NAMES},
};

/// Maximum number of nodes around a use, and depth in a condition, to search: texts may be nested without bound.
const ANCESTORS_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// Kinds of questions that a condition asks about a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Existence of a global: `typeof process !== "undefined"`.
    Exists,
    /// The same by the name of what made a value, as translations to ES5 ask: `"Map" === value.constructor.name`.
    IsMadeBy,
}

/// Evaluates conditions of a text for a target.
pub(super) struct Guards<'t, 'a> {
    pub(super) source: &'t Source<'a>,
    pub(super) target: Target,
}

impl Guards<'_, '_> {
    /// Returns true if the value of a condition keeps the node from running.
    pub(super) fn is_ruled_out(&self, node: NodeId, question: Question) -> bool {
        let nodes = self.source.semantic.nodes();
        let span = nodes.kind(node).span();
        let holds = |part: Span| part.contains_inclusive(span);
        nodes.ancestors(node).take(ANCESTORS_MAX).any(|ancestor| match ancestor.kind() {
            AstKind::IfStatement(branch) => match self.answer(&branch.test, question, DEPTH_MAX) {
                Some(true) => branch.alternate.as_ref().is_some_and(|alternate| holds(alternate.span())),
                Some(false) => holds(branch.consequent.span()),
                None => false,
            },
            AstKind::ConditionalExpression(branch) => match self.answer(&branch.test, question, DEPTH_MAX) {
                Some(true) => holds(branch.alternate.span()),
                Some(false) => holds(branch.consequent.span()),
                None => false,
            },
            AstKind::LogicalExpression(logical) if holds(logical.right.span()) => {
                match (logical.operator.as_str(), self.answer(&logical.left, question, DEPTH_MAX)) {
                    ("&&", answer) => answer == Some(false),
                    ("||", answer) => answer == Some(true),
                    _ => false,
                }
            }
            _ => false,
        })
    }

    /// Returns the value of a condition on the target; `None` if it does not follow from what the target lacks.
    fn answer(&self, condition: &Expression<'_>, question: Question, depth_max: usize) -> Option<bool> {
        let depth_max = depth_max.checked_sub(1)?;
        match condition.get_inner_expression() {
            Expression::UnaryExpression(unary) if unary.operator.as_str() == "!" => {
                self.answer(&unary.argument, question, depth_max).map(|answer| !answer)
            }
            Expression::LogicalExpression(logical) => {
                let [left, right] = [&logical.left, &logical.right].map(|side| self.answer(side, question, depth_max));
                match logical.operator.as_str() {
                    "&&" if left == Some(false) || right == Some(false) => Some(false),
                    "||" if left == Some(true) || right == Some(true) => Some(true),
                    "&&" | "||" => left.and(right).filter(|_| left == right),
                    _ => None,
                }
            }
            Expression::BinaryExpression(binary) if binary.operator.as_str() == "in" => {
                let Expression::StringLiteral(name) = binary.left.get_inner_expression() else { return None };
                (is_global_object(&binary.right) && self.lacks_global(name.value.as_str())).then_some(false)
            }
            Expression::BinaryExpression(binary) => self.compared(binary, question),
            Expression::Identifier(name) => {
                self.source.initial(name).and_then(|value| self.answer(value, question, depth_max))
            }
            other => {
                let name = global_member(other)?;
                self.lacks_global(name).then_some(false)
            }
        }
    }

    fn compared(&self, binary: &BinaryExpression<'_>, question: Question) -> Option<bool> {
        let when_equal = match binary.operator.as_str() {
            "===" | "==" => true,
            "!==" | "!=" => false,
            _ => return None,
        };
        let sides = (binary.left.get_inner_expression(), binary.right.get_inner_expression());
        if question == Question::IsMadeBy && (is_old_iterator(sides.0) || is_old_iterator(sides.1)) {
            return Some(!when_equal);
        }
        let ((Expression::StringLiteral(text), other) | (other, Expression::StringLiteral(text))) = sides else {
            return None;
        };
        let text = text.value.as_str();
        match (question, other) {
            (_, Expression::UnaryExpression(unary)) if unary.operator.as_str() == "typeof" => {
                let is_undefined = self.is_undefined(&unary.argument)?;
                // Of what exists it is not said here whether it is a function or an object.
                (is_undefined || text == "undefined").then_some((is_undefined && text == "undefined") == when_equal)
            }
            (Question::IsMadeBy, _) => self.lacks_global(text).then_some(!when_equal),
            _ => None,
        }
    }

    /// Returns true if a global, or a member of the global object, is undefined on the target; `None` if unknown.
    fn is_undefined(&self, value: &Expression<'_>) -> Option<bool> {
        let value = value.get_inner_expression();
        let Expression::Identifier(global) = value else {
            return self.lacks_global(global_member(value)?).then_some(true);
        };
        let name = global.name.as_str();
        if !self.source.semantic.is_reference_to_global_variable(global) {
            return None;
        }
        let is_newer = self.target.newer_globals().iter().any(|(newer, _)| *newer == name);
        // Others, such as `fields`, are there in calls of some functions only.
        let is_always = ES_NAMES.contains(&name) && name != "undefined" || ["Buffer", "console"].contains(&name);
        let has = self.target.has_global(name) == Some(true) && is_always && !is_newer;
        if has { Some(false) } else { self.lacks_global(name).then_some(true) }
    }

    /// Returns true if a global does not exist on the target, and the text does not make it.
    fn lacks_global(&self, name: &str) -> bool {
        let scoping = self.source.semantic.scoping();
        let references = scoping.root_unresolved_references().iter().filter(|(own, _)| own.as_str() == name);
        let is_made = references.flat_map(|(_, ids)| ids.iter()).any(|id| scoping.get_reference(*id).is_write());
        let is_made = is_made || self.source.makes_global(name) || self.source.has_binding(name);
        self.target.has_global(name) == Some(false) && !is_made
    }
}

/// The name in `globalThis.name`.
fn global_member<'a>(value: &Expression<'a>) -> Option<&'a str> {
    let member = value.as_member_expression().filter(|member| is_global_object(member.object()))?;
    member.static_property_name()
}

fn is_global_object(value: &Expression<'_>) -> bool {
    value.is_specific_id("globalThis")
}

/// Returns true if a value is `list["@@iterator"]`. Translations to ES5 ask for it besides `list[Symbol.iterator]`, and
/// it is `undefined`, since nothing has such a member.
fn is_old_iterator(value: &Expression<'_>) -> bool {
    let Expression::ComputedMemberExpression(member) = value else { return false };
    matches!(&member.expression, Expression::StringLiteral(name) if name.value.as_str() == "@@iterator")
}
