//! Gives a text the rules of a target, in our own sandbox.

use super::target::Target;

/// Globals that our sandbox has, and not every target.
const OWN_GLOBALS: [&str; 9] =
    ["Buffer", "TextDecoder", "TextEncoder", "atob", "btoa", "console", "exports", "module", "structuredClone"];

/// The text as a script or a module, without what the target lacks.
///
/// All of that is before the first line, so that lines stay what they are.
pub(crate) fn under_rules(script: &str, target: Target) -> String {
    let lacks = target.engine().lacks().iter().filter(|_| target.engine().is_known()).copied();
    let own = OWN_GLOBALS.into_iter().filter(|name| target.has_global(name) == Some(false));
    // What a text does not name need not be taken away. Members come first: they are found by way of the globals.
    let named = |path: &&str| path.rsplit('.').next().is_some_and(|name| uses(script, name));
    let (members, globals): (Vec<&str>, Vec<&str>) =
        lacks.chain(own).filter(named).partition(|path| path.contains('.'));
    let mut text = String::new();
    if target.is_module() {
        let imports = target.imports().iter().filter(|name| uses(script, name)).copied().collect::<Vec<_>>();
        text += &match imports.is_empty() {
            true => "export{};".to_owned(),
            // The only module that there is.
            false => format!("import{{{}}}from'buffer';", imports.join(",")),
        };
        imports.iter().filter(|name| script.contains(&format!("function {name}"))).for_each(|name| {
            text += &replaced(name, target.getters());
        });
    } else if is_strict(script) {
        text += "'use strict';";
    }
    members.iter().for_each(|path| text += &format!("delete {path};"));
    globals.iter().for_each(|name| text += &format!("delete globalThis.{name};"));
    text + script
}

/// Gives a function of the text that has taken the place of an imported class what the network's module adds to that
/// class: the module's own text runs after functions are declared. Ours is native, and another function to begin with.
fn replaced(class: &str, getters: &[&str]) -> String {
    let names = getters.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
    format!(
        "try{{if(Object.getOwnPropertyNames({class}.prototype).length<2)for(const n of[{names}])\
         Object.defineProperty({class}.prototype,n,{{get(){{}}}})}}catch{{}}"
    )
}

/// Whether a text has a name, and not as the end of a longer one.
fn uses(text: &str, name: &str) -> bool {
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

/// Whether a script begins with the directive that makes all of it strict.
fn is_strict(script: &str) -> bool {
    let mut rest = script.trim_start_matches('\u{feff}').trim_start();
    while let Some((comment, end)) = [("//", "\n"), ("/*", "*/")].into_iter().find(|(start, _)| rest.starts_with(start))
    {
        let Some(at) = rest[comment.len()..].find(end) else { return false };
        rest = rest[comment.len() + at + end.len()..].trim_start();
    }
    rest.starts_with("'use strict'") || rest.starts_with("\"use strict\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_lines_and_the_directive() {
        for (script, target, expected) in [
            ("a();\nb();", Target::ChirpStackScript, "a();\nb();"),
            ("a();\nb();", Target::ChirpStackModule, "export{};a();\nb();"),
            ("// 1\n/* 2 */ 'use strict';", Target::TtnV2, "'use strict';// 1\n/* 2 */ 'use strict';"),
            (
                "Object.assign(new Map())",
                Target::TtnV2,
                "delete Object.assign;delete globalThis.Map;Object.assign(new Map())",
            ),
            ("new Buffer(1)", Target::ChirpStackModule, "import{Buffer}from'buffer';new Buffer(1)"),
            ("new Buffer(1)", Target::ThingsStack, "delete globalThis.Buffer;new Buffer(1)"),
            ("new Buffer(1)", Target::Datacake, "new Buffer(1)"),
            ("typeof module", Target::ChirpStackScript, "delete globalThis.module;typeof module"),
        ] {
            assert_eq!(under_rules(script, target), expected);
        }
    }
}
