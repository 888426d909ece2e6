// Records a match and writes it as a replay file, byte for byte in the format of `ludus replay` (ludus/envs/replay.py).

// SHA-256 of bytes that come piece by piece. The page may be opened from disk, where crypto.subtle may be missing, and it
// cannot continue a digest.
function makeSha256() {
  const primes = [], isPrime = (n) => primes.every((p) => n % p);
  for (let n = 2; primes.length < 64; n++) if (isPrime(n)) primes.push(n);
  const fraction = (value) => ((value - Math.floor(value)) * 2 ** 32) | 0;
  const K = Int32Array.from(primes, (p) => fraction(Math.cbrt(p))), state = Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));
  const block = new Uint8Array(64), words = new Int32Array(64), view = new DataView(block.buffer);
  let filled = 0, total = 0;
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  function compress() {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const a = words[i - 15], b = words[i - 2];
      words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + words[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, k) => { state[k] += value; });
    filled = 0;
  }
  function add(bytes) {
    total += bytes.length;
    for (let at = 0; at < bytes.length;) {
      const part = Math.min(64 - filled, bytes.length - at);
      block.set(bytes.subarray(at, at + part), filled);
      filled += part; at += part;
      if (filled === 64) compress();
    }
  }
  return {
    add,
    // The digest of all bytes so far, which may go on afterwards.
    digest() {
      const kept = [state.slice(), block.slice(), filled, total], bits = 8 * total, end = new Uint8Array(filled < 56 ? 64 - filled : 128 - filled);
      end[0] = 0x80;
      new DataView(end.buffer).setUint32(end.length - 4, bits);
      new DataView(end.buffer).setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
      add(end);
      const found = new Uint8Array(32);
      state.forEach((word, k) => new DataView(found.buffer).setInt32(4 * k, word));
      state.set(kept[0]); block.set(kept[1]); filled = kept[2]; total = kept[3];
      return found;
    },
  };
}

const hexadecimal = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// `about`: world, world_version, config, files, dtype and shape of a seat's action, and the names of observations, events and
// state metrics, as Python describes them.
function makeRecorder(engine, about, seed, players) {
  const sha = makeSha256(), kept = [], seats = engine.seats;
  const sorted = (names) => names.map((name, index) => [name, index]).sort(([a], [b]) => (a < b ? -1 : 1)).map(([, index]) => index);
  const tables = [["events", about.events], ["state_metrics", about.state_metrics]].map(([name, names]) => [name, names.length, sorted(names)]);
  const observed = [...about.observations].sort(), numbers = new Float32Array(seats * (about.events.length + about.state_metrics.length));
  const plain = (floats) => Float32Array.from(floats, (value) => value + 0); // devices may disagree about the sign of zero
  return {
    get steps() { return kept.length; },
    // Before the step: what every seat does.
    note() { kept.push(engine.actions.slice()); },
    // After the step, the same as `StepDigest.add`: what is seen, events and state metrics by name, and whether it ended.
    add(ended) {
      for (const name of observed) sha.add(new Uint8Array(plain(engine.tensor(`${ended ? "final_observations" : "observations"}.${name}`)).buffer));
      let at = 0;
      for (const [name, columns, order] of tables) {
        const rows = engine.tensor(name);
        for (const column of order) for (let seat = 0; seat < seats; seat++) numbers[at++] = rows[seat * columns + column] + 0;
      }
      sha.add(new Uint8Array(numbers.buffer));
      sha.add(Uint8Array.of(ended ? 1 : 0));
    },
    async file() {
      const kinds = { int8: Int8Array, int32: Int32Array, int64: BigInt64Array, float32: Float32Array }, Kind = kinds[about.dtype];
      const flat = Kind.from(kept.flatMap((actions) => Array.from(actions)), about.dtype === "int64" ? BigInt : Number);
      const header = new TextEncoder().encode(JSON.stringify({
        format_version: 1, world: about.world, world_version: about.world_version, config: about.config, files: about.files,
        seed, game: 0, episode: 0, players: players.map((name) => name.replace(/[^\x20-\x7e]/g, "?").slice(0, 80)),
        shape: [kept.length, seats, ...about.shape], dtype: about.dtype, checksum: hexadecimal(sha.digest()),
      }));
      const packed = await deflated(new Uint8Array(flat.buffer)), whole = makeSha256();
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, header.length, true);
      const parts = [new TextEncoder().encode("LUDUSRPL"), length, header, packed];
      parts.forEach((part) => whole.add(part));
      return new Blob([...parts, whole.digest()], { type: "application/octet-stream" });
    },
  };
}
