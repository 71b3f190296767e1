//! Globals and results of payload functions, and the texts of their failures.

mod builtins;
mod dialects;
mod es_modules;
mod failures;
mod json;
mod objects;
mod positions;
mod results;
mod single_functions;
