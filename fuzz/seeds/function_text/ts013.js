const M = { 1: "low" };
function decodeUplink({ bytes, fPort, recvTime }) {
  if (fPort > 9) return { errors: ["no"] };
  return { data: { s: bytes.map(b => M[b] ?? b.toString(16)).join(), t: +recvTime, r: Math.random() }, warnings: [`w${fPort}`] };
}