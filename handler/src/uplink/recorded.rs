//! Work on recorded uplinks: charts of them, decoding them again, and sending their messages again.

pub(crate) mod chart;
pub(crate) mod decode_again;
pub(crate) mod one_at_a_time;
pub(crate) mod send_again;
