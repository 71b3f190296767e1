//! The calling conventions: which function names a source may define, and where they are found.

use crate::guest::{Function, Untouched};
use crate::js::{Realm, ScriptText, Thrown, Unevaluated, Value};
use crate::wire::{self, Dialect};
use std::ffi::CStr;

/// Defines `NAMES`, all function names, and JavaScript expressions: `DEFINED`, for an array of those functions that a source
/// defines or exports as a CommonJS module does, and `DEFINED_IN_MODULE`, for a function that finds them in the namespace
/// of an ES module with the footer `FOOTER`. If a source defines several for one purpose, the first in this list wins.
macro_rules! names {
    ($($which:ident $dialect:ident $name:literal),* $(,)?) => {
        const NAMES: &[(wire::Function, Dialect, &str)] = &[$((wire::Function::$which, Dialect::$dialect, $name)),*];
        const DEFINED: &str = concat!(defined!($($name)*), "\0");
        /// Inside the module, where also functions that it does not export are in scope.
        const FOOTER: &str = concat!("export const airlock$defined=", defined!($($name)*), ";");
        const DEFINED_IN_MODULE: &str = concat!(
            "namespace=>{const exported=[",
            $("typeof namespace.", $name, "==='function'?namespace.", $name, ":null,",)*
            "];return namespace.airlock$defined.map((own,index)=>own??exported[index])}\0",
        );
    };
}

/// An array of the functions with these names, with null for what is not defined.
macro_rules! defined {
    ($($name:literal)*) => {
        concat!("[", $(
            "typeof ", $name, "==='function'?", $name,
            ":typeof module==='object'&&typeof module?.exports?.", $name, "==='function'?module.exports.", $name,
            ":typeof exports==='object'&&typeof exports?.", $name, "==='function'?exports.", $name, ":null,",
        )* "]")
    };
}

names! {
    Decoder Ts013 "decodeUplink",
    Decoder V2 "Decoder",
    Decoder ChirpStack3 "Decode",
    Converter V2 "Converter",
    Validator V2 "Validator",
    Encoder Ts013 "encodeDownlink",
    Encoder V2 "Encoder",
    Encoder ChirpStack3 "Encode",
    DecodeDownlink Ts013 "decodeDownlink",
    NormalizeUplink Ts013 "normalizeUplink",
}

/// The functions that a source defines.
pub(crate) struct Definitions(Value);

impl Definitions {
    /// Runs `text` as a script, and looks up its functions.
    pub(crate) fn of_script(realm: Realm, text: &ScriptText, file: &CStr) -> Result<Self, Unevaluated> {
        realm.run(text, file)?;
        realm.value_of(expression(DEFINED)).map(Self).map_err(Unevaluated::Threw)
    }

    /// Runs `text` as a module, and looks up its functions.
    pub(crate) fn of_module(realm: Realm, text: &ScriptText, file: &CStr) -> Result<Self, Unevaluated> {
        let namespace = realm.run_module(text, FOOTER, file)?;
        let find = realm.value_of(expression(DEFINED_IN_MODULE)).map_err(Unevaluated::Threw)?;
        find.call(&realm.undefined(), [&namespace]).map(Self).map_err(Unevaluated::Threw)
    }

    /// The function for a purpose, of the given dialect if there is one.
    pub(crate) fn find(&self, which: wire::Function, dialect: Option<Dialect>) -> Result<Option<Function>, Thrown> {
        for (index, (named, candidate, _)) in NAMES.iter().enumerate() {
            if *named == which && dialect.is_none_or(|dialect| fits(dialect, *candidate, which)) {
                let code = self.0.at(index as u32)?;
                if code.is_function() {
                    let (slot, receiver) = (which.slot(), code.realm().undefined());
                    let globals = Untouched::default();
                    return Ok(Some(Function { slot, dialect: *candidate, code, receiver, globals }));
                }
            }
        }
        Ok(None)
    }

    /// The failure message for a source that defines none of these functions.
    pub(crate) fn expected(any_of: &[wire::Function], dialect: Option<Dialect>) -> String {
        let fits = |candidate: &Dialect, which| dialect.is_none_or(|dialect| fits(dialect, *candidate, which));
        let is_expected = |(which, candidate, _): &&(_, _, _)| any_of.contains(which) && fits(candidate, *which);
        let names: Vec<String> = NAMES.iter().filter(is_expected).map(|(.., name)| format!("`{name}`")).collect();
        let names = if names.is_empty() { "any function of that dialect".to_owned() } else { names.join(", ") };
        format!("defines no function that fits; expected one named {names}")
    }
}

/// A constant that ends in a zero byte.
fn expression(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or(c"[]")
}

/// True if a function of dialect `candidate` may be used when `dialect` was requested. Converters and validators combine
/// with any decoder.
fn fits(dialect: Dialect, candidate: Dialect, which: wire::Function) -> bool {
    dialect == candidate || matches!(which, wire::Function::Converter | wire::Function::Validator)
}
