//! Gives a text the rules of a target, in our own sandbox.

use oxc::allocator::Allocator;

use crate::lint::{
    source::Source,
    target::{Shape, Target},
};

/// Globals that our sandbox has, and not every target.
const OWN_GLOBALS: [&str; 9] =
    ["Buffer", "TextDecoder", "TextEncoder", "atob", "btoa", "console", "exports", "module", "structuredClone"];

/// Text that replaces a function in a result, for networks that refuse functions there.
pub(super) const FUNCTION: &str = "[function]";

/// JSON leaves functions out, as in what the text itself writes, and results of these networks do not.
const MARK_FUNCTIONS: &str = "(()=>{let own=false;const write=JSON.stringify;\
    JSON.stringify=(...a)=>{own=true;try{return write(...a)}finally{own=false}};\
    Object.defineProperty(Function.prototype,'toJSON',\
    {value(){return own?undefined:'[function]'},configurable:true,writable:true})})();";

/// The network's class is a script with getters that ours, which is native, does not need.
const BUFFER_GETTERS: &str = "for(const n of['parent','offset'])if(!Object.hasOwn(Buffer.prototype,n))\
    Object.defineProperty(Buffer.prototype,n,{enumerable:true,get(){return n=='parent'?this.buffer:this.byteOffset}});";

/// Gives a function `Buffer` of the text, which has taken the place of the imported class, what the network's module adds
/// to that class: the module's own text runs after functions are declared, and before that of the codec.
const REPLACED_BUFFER: &str = "try{const n=globalThis.Buffer,o=Object,p=Buffer.prototype;\
    for(const k of['parent','offset'])o.defineProperty(p,k,{enumerable:true,get(){}});\
    for(const k of o.getOwnPropertyNames(n.prototype))if(!o.hasOwn(p,k))p[k]=n.prototype[k];\
    for(const k of o.getOwnPropertyNames(n))if(!o.hasOwn(Buffer,k))Buffer[k]=n[k];\
    for(const k of['alloc','allocUnsafe','concat','from'])\
    Buffer[k]=(...a)=>o.setPrototypeOf(n[k](...a),Buffer.prototype);\
    o.setPrototypeOf(p,Uint8Array.prototype)}catch{}";

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
        let is_replaced = uses(script, "Buffer") && declares_function(script, "Buffer");
        let imports = target.imports().iter().filter(|name| uses(script, name) && !is_replaced).copied();
        let imports = imports.collect::<Vec<_>>();
        text += &match imports.is_empty() {
            true => "export{};".to_owned(),
            // The only module that there is.
            false => format!("import{{{}}}from'buffer';", imports.join(",")),
        };
        if is_replaced {
            text += REPLACED_BUFFER;
        } else if imports.contains(&"Buffer") && ["parent", "offset"].iter().any(|name| uses(script, name)) {
            text += BUFFER_GETTERS;
        }
    } else if target.enforces_strict() && is_strict(script) {
        text += "'use strict';";
    }
    members.iter().for_each(|path| text += &format!("delete {path};"));
    globals.iter().for_each(|name| text += &format!("delete globalThis.{name};"));
    if target.shape() == Shape::TypedFields {
        text += MARK_FUNCTIONS;
    }
    if target.enforces_strict() { text + script } else { text + &without_directives(script) }
}

/// The text without directives that make code strict, which some engines take for any text.
pub(crate) fn without_directives(script: &str) -> String {
    script.replace("use strict", "use_strict")
}

/// Returns true if a text declares a function at its top level.
fn declares_function(script: &str, name: &str) -> bool {
    let allocator = Allocator::default();
    let source = Source::read(&allocator, script, true);
    let scoping = source.semantic.scoping();
    let mut own = scoping.iter_bindings_in(scoping.root_scope_id());
    own.any(|symbol| scoping.symbol_name(symbol) == name && scoping.symbol_flags(symbol).is_function())
}

/// Returns true if a text has a name, and not as the end of a longer one.
fn uses(text: &str, name: &str) -> bool {
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

/// Returns true if a script begins with the directive that makes all of it strict.
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
            ("// 1\n/* 2 */ 'use strict';", Target::ChirpStackScript, "'use strict';// 1\n/* 2 */ 'use strict';"),
            ("'use strict';", Target::TtnV2, "'use_strict';"),
            (
                "Object.assign(new Map())",
                Target::TtnV2,
                "delete Object.assign;delete globalThis.Map;Object.assign(new Map())",
            ),
            ("new Buffer(1)", Target::ChirpStackModule, "import{Buffer}from'buffer';new Buffer(1)"),
            ("new Buffer(1)", Target::Datacake, "new Buffer(1)"),
            ("typeof module", Target::ChirpStackScript, "delete globalThis.module;typeof module"),
        ] {
            assert_eq!(under_rules(script, target), expected);
        }
        let stack = under_rules("new Buffer(1)", Target::ThingsStack);
        assert_eq!(stack, format!("delete globalThis.Buffer;{MARK_FUNCTIONS}new Buffer(1)"));
    }
}
