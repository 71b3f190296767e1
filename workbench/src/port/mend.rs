//! Changes that let a text be evaluated by another network's rules, and mean the same.

use oxc::{
    ast::{
        AstKind,
        ast::{AssignmentTarget, ExportDefaultDeclarationKind, Expression, ExpressionStatement, Statement},
    },
    span::{GetSpan as _, Span},
    str::Str,
};

use super::edits::Edits;
use crate::lint::{
    finding::Rule,
    rules::Parsed,
    source::Source,
    target::{ENTRIES, Target},
};

/// A text with what was changed.
pub(super) struct Mended {
    pub(super) text: String,
    pub(super) changes: Vec<String>,
}

/// Mends a text for a target. What cannot be mended stays.
pub(super) fn mend(parsed: &Parsed<'_>, target: Target) -> Mended {
    let source = parsed.source(target);
    let mut mender = Mender { source, target, edits: Edits::default(), changes: Vec::new(), end: String::new() };
    source.program.body.iter().for_each(|statement| mender.statement(statement));
    if target.is_module() {
        mender.octals();
    }
    mender.declarations(parsed);
    let Mender { edits, changes, end, .. } = mender;
    Mended { text: edits.apply(source.semantic.source_text()) + &end, changes }
}

struct Mender<'t, 'a> {
    source: &'t Source<'a>,
    target: Target,
    edits: Edits,
    changes: Vec<String>,
    /// Text to add at the end.
    end: String,
}

impl Mender<'_, '_> {
    fn statement(&mut self, statement: &Statement<'_>) {
        let span = statement.span();
        match statement {
            Statement::ImportDeclaration(import) => {
                let is_given =
                    self.target.has_global("Buffer") == Some(true) && import.source.value.as_str() == "buffer";
                if is_given {
                    self.change(span, "", "removed the import of `Buffer`, which is a global there");
                }
            }
            Statement::ExportDefaultDeclaration(export) => {
                let declaration = export.declaration.span();
                let is_named = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.id.is_some(),
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => class.id.is_some(),
                    _ => false,
                };
                let keyword = Span::new(span.start, declaration.start);
                self.change(keyword, if is_named { "" } else { "void " }, "removed `export default`");
            }
            _ if self.target.is_module() => self.common_js(statement),
            Statement::ExportDeclaration(export) => {
                let keyword = Span::new(span.start, export.declaration.span().start);
                self.change(keyword, "", "removed `export`");
            }
            Statement::ExportNamedDeclaration(export) => {
                self.change(span, "", "removed `export`");
                for specifier in &export.specifiers {
                    let (local, name) = (specifier.local.name(), specifier.exported.name());
                    if local != name && ENTRIES.iter().any(|entry| entry.name == name.as_str()) {
                        self.end += &format!("\nvar {name} = {local};");
                    }
                }
            }
            other => self.common_js(other),
        }
    }

    /// Mends an assignment to a member of `exports` or `module`, where there is none.
    fn common_js(&mut self, statement: &Statement<'_>) {
        let Statement::ExpressionStatement(statement) = statement else { return };
        let Some((object, name)) = exported(statement) else { return };
        if self.target.has_global(object) != Some(false) {
            return;
        }
        let Expression::AssignmentExpression(assignment) = &statement.expression else { return };
        let is_function =
            matches!(assignment.right, Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_));
        match name {
            Some(name) if is_function => {
                self.change(
                    assignment.left.span(),
                    &format!("var {name}"),
                    &format!("made `{name}` a variable in place of an export"),
                );
            }
            _ => {
                let start = Span::new(statement.span.start, statement.span.start);
                let guard = format!("if (typeof {object} !== \"undefined\") ");
                self.change(start, &guard, &format!("assigns `{object}` only where there is one"));
            }
        }
    }

    /// Octal numbers, which strict code writes in another way.
    fn octals(&mut self) {
        for node in self.source.semantic.nodes().iter() {
            let AstKind::NumericLiteral(number) = node.kind() else { continue };
            let Some(raw) = number.raw.as_ref().map(Str::as_str) else { continue };
            let is_old = raw.len() > 1 && raw.starts_with('0') && raw.bytes().all(|byte| byte.is_ascii_digit());
            if is_old {
                let new = number.value.to_string();
                self.change(
                    number.span,
                    &new,
                    &format!("wrote `{raw}` as `{new}`, because strict code has no such octal numbers"),
                );
            }
        }
    }

    /// Declares variables and globals in a line before the text.
    fn declarations(&mut self, parsed: &Parsed<'_>) {
        let findings = parsed.judge(self.target, true);
        let names = |rule: Rule| -> Vec<String> {
            let own = findings.iter().filter(|finding| finding.rule == rule);
            own.filter_map(|finding| finding.name.clone()).collect()
        };
        let mut declared = names(Rule::UndeclaredVariable);
        declared.extend(parsed.v2_globals(self.target).into_iter().map(str::to_owned));
        declared.dedup();
        let mut first = String::new();
        if !declared.is_empty() {
            let names = declared.join(", ");
            self.changes.push(format!("declared {names}"));
            first += &format!("var {names};\n");
        }
        if names(Rule::MissingGlobal).iter().any(|name| name == "console") {
            self.changes.push("added a `console` that logs nothing".to_owned());
            let log = ["log", "info", "warn", "error", "debug"].map(|name| format!("{name}: function () {{}}"));
            first += &format!("var console = {{ {} }};\n", log.join(", "));
        }
        // A directive must stay the first statement.
        let at = self.source.program.directives.last().map_or(0, |last| last.span.end);
        let line_break = if at > 0 && !first.is_empty() { "\n" } else { "" };
        self.edits.replace(at..at, format!("{line_break}{first}"));
    }

    fn change(&mut self, span: Span, text: &str, what: &str) {
        self.edits.replace(span.start..span.end, text);
        let line = self.source.line(span.start);
        self.changes.push(format!("line {line}: {what}"));
    }
}

/// The object to which a statement assigns an export, and the name of the export.
fn exported<'s>(statement: &'s ExpressionStatement<'_>) -> Option<(&'static str, Option<&'s str>)> {
    let Expression::AssignmentExpression(assignment) = &statement.expression else { return None };
    let AssignmentTarget::StaticMemberExpression(member) = &assignment.left else { return None };
    let property = member.property.name.as_str();
    match &member.object {
        Expression::Identifier(object) if object.name.as_str() == "exports" => Some(("exports", Some(property))),
        Expression::Identifier(object) if object.name.as_str() == "module" => Some(("module", None)),
        Expression::StaticMemberExpression(inner) => match &inner.object {
            Expression::Identifier(object) if object.name.as_str() == "module" => Some(("module", Some(property))),
            _ => None,
        },
        _ => None,
    }
}
