//! Syntax that a target's engine does not read, and texts that are no script, no module or no strict code.

use oxc::ast::{
    AstKind,
    ast::{ImportDeclaration, ImportDeclarationSpecifier, Statement, VariableDeclarationKind},
};

use super::text::Text;
use crate::lint::{
    finding::{Finding, Rule},
    target::engine::Syntax,
};
use oxc::span::GetSpan as _;

/// Maximum number of findings of newer syntax: one of each kind says enough, and a minified text has thousands.
const NEWER_MAX: usize = 5;

/// Judges whether the text can be parsed as a script or module, as the target has it.
pub(super) fn parse(text: &Text<'_, '_>) -> Vec<Finding> {
    let first = |source: &crate::lint::source::Source<'_>, rule: Rule, prefix: &str| -> Vec<Finding> {
        let errors = source.errors.iter().take(NEWER_MAX);
        errors.map(|(at, message)| Finding::at(rule, source.line(*at), format!("{prefix}{message}"))).collect()
    };
    match (text.target.is_module(), text.script.errors.is_empty(), text.module.errors.is_empty()) {
        // What our own QuickJS has loaded, ChirpStack's loads too, whatever the standard says.
        (true, _, false) if text.has_loaded => Vec::new(),
        (true, true, false) => first(text.module, Rule::StrictSyntax, "not allowed in strict code: "),
        (true, _, true) => module_syntax(text),
        (true, false, false) => first(text.module, Rule::SyntaxError, ""),
        (false, true, _) => Vec::new(),
        (false, false, true) => module_syntax(text),
        (false, false, false) if text.has_loaded => Vec::new(),
        (false, false, false) => first(text.script, Rule::SyntaxError, ""),
    }
}

/// `import` and `export`, as far as the target refuses them.
fn module_syntax(text: &Text<'_, '_>) -> Vec<Finding> {
    let (title, is_module) = (text.target.title(), text.target.is_module());
    let refused = |statement: &Statement<'_>| {
        let message = match statement {
            Statement::ImportDeclaration(import) if is_module => match import.source.value.as_str() {
                "buffer" if binds(import, "Buffer") => {
                    format!("{title} imports `Buffer` itself, and refuses a second import of that name")
                }
                "buffer" if takes_default(import) => format!("{title} has a module `buffer` without a default export"),
                name if text.target.modules().contains(&name) => return None,
                other => format!("{title} has no module `{other}`"),
            },
            Statement::ExportDefaultDeclaration(_) if is_module => {
                format!("{title} adds an `export default` of its own, and a module has only one")
            }
            Statement::ImportDeclaration(_) => format!("{title} runs scripts, which have no `import`"),
            Statement::ExportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
                if !is_module =>
            {
                format!("{title} runs scripts, which have no `export`")
            }
            _ => return None,
        };
        Some(Finding::at(Rule::ModuleSyntax, text.module.line(statement.span().start), message))
    };
    // Of packages for Datacake and Actility it is not known how they are evaluated.
    match text.target.engine().is_known() {
        true => text
            .module
            .program
            .body
            .iter()
            .filter_map(refused)
            .chain(top_level_await(text))
            .chain(import_meta(text))
            .take(1)
            .collect(),
        false => Vec::new(),
    }
}

/// Returns true if an import makes a variable of this name.
fn binds(import: &ImportDeclaration<'_>, name: &str) -> bool {
    import.specifiers.iter().flatten().any(|specifier| specifier.local().name.as_str() == name)
}

fn takes_default(import: &ImportDeclaration<'_>) -> bool {
    let mut specifiers = import.specifiers.iter().flatten();
    specifiers.any(|specifier| matches!(specifier, ImportDeclarationSpecifier::ImportDefaultSpecifier(_)))
}

/// `await` outside of functions, which only modules have.
fn top_level_await(text: &Text<'_, '_>) -> Option<Finding> {
    if text.target.is_module() {
        return None;
    }
    let nodes = text.module.semantic.nodes();
    let is_await = |kind: AstKind<'_>| match kind {
        AstKind::AwaitExpression(_) => true,
        AstKind::ForOfStatement(each) => each.r#await,
        _ => false,
    };
    let is_function = |kind: AstKind<'_>| matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_));
    let found = nodes.iter().find(|node| {
        is_await(node.kind()) && !nodes.ancestors(node.id()).any(|ancestor| is_function(ancestor.kind()))
    })?;
    let message = format!("{} runs scripts, which have no `await` outside of functions", text.target.title());
    Some(Finding::at(Rule::ModuleSyntax, text.module.line(found.kind().span().start), message))
}

/// `import.meta`, which only modules have.
fn import_meta(text: &Text<'_, '_>) -> Option<Finding> {
    let mut nodes = text.module.semantic.nodes().iter().filter(|_| !text.target.is_module());
    let found = nodes.find(|node| matches!(node.kind(), AstKind::ImportMeta(_)))?;
    let message = format!("{} runs scripts, which have no `import.meta`", text.target.title());
    Some(Finding::at(Rule::ModuleSyntax, text.module.line(found.kind().span().start), message))
}

/// Syntax that is newer than the engine. A text with any of it is refused as a whole, so it counts also where it does
/// not run.
pub(super) fn newer(text: &Text<'_, '_>) -> Vec<Finding> {
    let engine = text.target.engine();
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    for node in text.source.semantic.nodes().iter() {
        let Some((_, name)) = syntax(node.kind()).filter(|(syntax, _)| !engine.has(*syntax)) else { continue };
        if seen.contains(&name) || found.len() >= NEWER_MAX {
            continue;
        }
        seen.push(name);
        let line = text.source.line(node.kind().span().start);
        found.push(Finding::at(Rule::NewerSyntax, line, format!("{} has no {name}", engine.name())));
    }
    found.extend(html_comment(text).filter(|_| !engine.has(Syntax::HtmlComment)));
    // The engine may know it, but what is around the text comes before.
    if text.source.program.hashbang.is_some() && engine.is_known() {
        let message = format!("begins with `#!`, where {} has lines of its own before", text.target.title());
        found.push(Finding::at(Rule::NewerSyntax, 1, message));
    }
    found.iter_mut().for_each(|finding| finding.level = text.level());
    found.sort_by_key(|finding| finding.line);
    found
}

/// The first comment that begins as in HTML.
fn html_comment(text: &Text<'_, '_>) -> Option<Finding> {
    let source = text.source.semantic.source_text();
    let begins =
        |at: u32| source.get(at as usize..).is_some_and(|rest| rest.starts_with("<!--") || rest.starts_with("-->"));
    let comment = text.source.program.comments.iter().find(|comment| begins(comment.span.start))?;
    let message = format!("{} has no comments that begin with `<!--` or `-->`", text.target.engine().name());
    Some(Finding::at(Rule::NewerSyntax, text.source.line(comment.span.start), message))
}

/// The syntax of a node, if not every engine has it, and its name for people.
fn syntax(kind: AstKind<'_>) -> Option<(Syntax, &'static str)> {
    let es2015 = |name| Some((Syntax::Es2015, name));
    match kind {
        AstKind::VariableDeclaration(variables) => match variables.kind {
            VariableDeclarationKind::Const => es2015("`const`"),
            VariableDeclarationKind::Let => es2015("`let`"),
            _ => None,
        },
        AstKind::ArrowFunctionExpression(_) => es2015("arrow functions"),
        AstKind::TemplateLiteral(_) => es2015("template literals"),
        AstKind::Class(_) => es2015("classes"),
        AstKind::SpreadElement(_) => es2015("`...`"),
        AstKind::FormalParameterRest(_) | AstKind::BindingRestElement(_) => es2015("`...` in parameters"),
        AstKind::ObjectPattern(_) | AstKind::ArrayPattern(_) => es2015("destructuring"),
        AstKind::ArrayAssignmentTarget(_) | AstKind::ObjectAssignmentTarget(_) => es2015("destructuring"),
        AstKind::ForOfStatement(each) if each.r#await => Some((Syntax::AsyncIteration, "`for await`")),
        AstKind::ForOfStatement(_) => es2015("`for … of`"),
        AstKind::ChainExpression(_) => es2015("`?.`"),
        AstKind::AwaitExpression(_) => es2015("`await`"),
        AstKind::NewTarget(_) => es2015("`new.target`"),
        AstKind::ImportExpression(_) => Some((Syntax::DynamicImport, "`import()`")),
        AstKind::BigIntLiteral(_) => Some((Syntax::BigInt, "BigInt literals")),
        AstKind::Function(function) => match (function.r#async, function.generator) {
            (true, true) => Some((Syntax::AsyncIteration, "`async` generators")),
            (true, false) => es2015("`async` functions"),
            (false, true) => es2015("generators"),
            (false, false) => None,
        },
        AstKind::FormalParameter(parameter) => {
            parameter.initializer.as_ref().and_then(|_| es2015("default values of parameters"))
        }
        AstKind::CatchClause(clause) if clause.param.is_none() => es2015("`catch` without a variable"),
        AstKind::ObjectProperty(property) if property.computed => es2015("computed names of members"),
        AstKind::ObjectProperty(property) if property.method => es2015("methods of objects"),
        AstKind::ObjectProperty(property) if property.shorthand => es2015("members without a value"),
        AstKind::AssignmentExpression(assignment) if assignment.operator.is_logical() => {
            Some((Syntax::LogicalAssignment, "`&&=`, `||=` and `??=`"))
        }
        AstKind::BinaryExpression(binary) if binary.operator.as_str() == "**" => es2015("`**`"),
        AstKind::AssignmentExpression(assignment) if assignment.operator.as_str() == "**=" => es2015("`**=`"),
        AstKind::LogicalExpression(logical) if logical.operator.as_str() == "??" => es2015("`??`"),
        AstKind::NumericLiteral(number) => literal(number.raw.as_ref()?.as_str()),
        _ => None,
    }
}

fn literal(text: &str) -> Option<(Syntax, &'static str)> {
    match text.as_bytes() {
        [b'0', b'b' | b'B', ..] => Some((Syntax::Es2015, "binary numbers")),
        [b'0', b'o' | b'O', ..] => Some((Syntax::Es2015, "numbers that begin with `0o`")),
        bytes if bytes.contains(&b'_') => Some((Syntax::NumericSeparator, "`_` in numbers")),
        _ => None,
    }
}
