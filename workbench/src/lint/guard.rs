//! Code that never runs on a target, because it is behind a question whose answer is known.

use oxc::{
    ast::{
        AstKind,
        ast::{BinaryExpression, Expression},
    },
    semantic::NodeId,
    span::{GetSpan as _, Span},
};

use super::target::Target;
use crate::source::Source;

/// How far around a use, and how deep in a condition, a question is looked for: texts may be nested without bound.
const ANCESTORS_MAX: usize = 64;
const DEPTH_MAX: usize = 8;

/// What a condition says about a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether a global exists: `typeof process !== "undefined"`.
    Exists,
    /// The same by the name of what made a value, as translations to ES5 ask: `"Map" === value.constructor.name`.
    IsMadeBy,
}

/// What asks, on a target.
pub(super) struct Guards<'t, 'a> {
    pub(super) source: &'t Source<'a>,
    pub(super) target: Target,
}

impl Guards<'_, '_> {
    /// Whether the answer keeps what stands there from running.
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

    /// What a condition is on the target, as far as that follows from what the target lacks.
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
            Expression::BinaryExpression(binary) => self.compared(binary, question),
            _ => None,
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
                let Expression::Identifier(name) = unary.argument.get_inner_expression() else { return None };
                let is_global = self.source.semantic.is_reference_to_global_variable(name);
                (is_global && self.lacks_global(name.name.as_str())).then_some((text == "undefined") == when_equal)
            }
            (Question::IsMadeBy, _) => self.lacks_global(text).then_some(!when_equal),
            _ => None,
        }
    }

    /// Whether a global does not exist on the target, nor is made by the text.
    fn lacks_global(&self, name: &str) -> bool {
        let scoping = self.source.semantic.scoping();
        let references = scoping.root_unresolved_references().iter().filter(|(own, _)| own.as_str() == name);
        let is_made = references.flat_map(|(_, ids)| ids.iter()).any(|id| scoping.get_reference(*id).is_write());
        self.target.has_global(name) == Some(false) && !is_made && !self.source.has_binding(name)
    }
}

/// Whether a value is `list["@@iterator"]`, for which translations to ES5 ask besides `list[Symbol.iterator]`: it is
/// `undefined`, since nothing has such a member.
fn is_old_iterator(value: &Expression<'_>) -> bool {
    let Expression::ComputedMemberExpression(member) = value else { return false };
    matches!(&member.expression, Expression::StringLiteral(name) if name.value.as_str() == "@@iterator")
}
