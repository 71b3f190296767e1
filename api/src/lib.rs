//! The wire contract: protocol buffers, REST bodies.
