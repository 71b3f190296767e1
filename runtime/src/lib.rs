//! Runs payload functions inside WebAssembly.
