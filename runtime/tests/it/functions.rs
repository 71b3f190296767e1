//! What payload functions may use and return, and what their failures say.

mod builtins;
mod dialects;
mod es_modules;
mod failures;
mod json;
mod positions;
mod results;
mod single_functions;
