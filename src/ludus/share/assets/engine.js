// A game and its agents in a browser or in node: the kernels of the simulator and the policies as WebAssembly.
//
//   const engine = await LudusEngine.load(wasmBytes, description);
//   const policy = engine.addPolicy(weightBytes, policyDescription);
//   engine.reset(7n); policy.reset(1);
//   engine.actions.set([0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 0);      // seat 0
//   policy.act(1, { deterministic: false });                    // seat 1
//   const { terminated, truncated } = engine.step();            // a game that ended has begun anew

const LudusEngine = (() => {
  const ARRAYS = {
    bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int32: Int32Array, uint32: Uint32Array, float32: Float32Array,
    int64: BigInt64Array, float64: Float64Array,
  };
  const halves = (seed) => {
    const bits = BigInt.asUintN(64, BigInt(seed));
    return [Number(bits & 0xffffffffn), Number(bits >> 32n)];
  };

  class Engine {
    constructor(instance, description) {
      this.description = description;
      this.seats = description.seats;
      this.bots = description.bots;
      this.core = instance.exports;
      this.buffers = new Map(description.buffers.map((buffer, index) => [buffer.name, { ...buffer, address: this.core.address(index) }]));
      this.actionSize = description.action.counts.length;
      this.views = new Map();
      this.core.start();
      this.reset(0);
    }

    // Views of the memory, made again when it has grown and moved.
    view(key, kind, address, length) {
      const found = this.views.get(key);
      if (found && found.buffer === this.core.memory.buffer) return found;
      const made = new ARRAYS[kind](this.core.memory.buffer, address, length);
      this.views.set(key, made);
      return made;
    }

    // A buffer by name, as numbers of its own type or of another one of the same size.
    tensor(name, kind) {
      const buffer = this.buffers.get(name);
      if (!buffer) throw new Error(`no tensor ${name}; valid: ${[...this.buffers.keys()].join(", ")}`);
      const dtype = kind || buffer.dtype;
      return this.view(`${name}:${dtype}`, dtype, buffer.address, buffer.bytes / ARRAYS[dtype].BYTES_PER_ELEMENT);
    }

    // Fields of the structs in a buffer: name, type, place of the first 32-bit word in the struct, and count of words.
    fields(name) {
      return this.buffers.get(name).fields.map(([field, type, word, count]) => ({ name: field, type, word, count }));
    }

    // One field of one struct, by name: a number, or an array for vectors.
    field(name, index, field) {
      const buffer = this.buffers.get(name), words = buffer.shape[buffer.shape.length - 1];
      const found = buffer.fields.find((each) => each[0] === field);
      const [, type, word, count] = found, place = index * words + word, numbers = this.tensor(name, type);
      return count === 1 ? numbers[place] : Array.from(numbers.subarray(place, place + count));
    }

    // What each seat does next, seat after seat; buttons are 0 or 1, choices are counted from 0.
    get actions() {
      const kind = this.description.action.kind === "box" ? "float32" : this.description.action.kind === "multi_binary" ? "int8" : "int32";
      return this.view("actions", kind, this.core.actions(), this.seats * this.actionSize);
    }

    // What each seat sees: the first entry, seat after seat; others are `engine.tensor("observations.NAME")`.
    get observations() { return this.tensor(`observations.${this.description.observations[0]}`); }

    reset(seed) {
      this.core.reset(...halves(seed));
      return this.observations;
    }

    // Begin the next episode of the same seed.
    restart() {
      this.core.restart();
      return this.observations;
    }

    step() {
      const ends = this.core.step();
      return { terminated: (ends & 1) !== 0, truncated: (ends & 2) !== 0 };
    }

    // Seat a scripted player by name, or nobody; `actBots` writes the actions of all that are seated.
    setBot(seat, name) {
      const index = name === null ? -1 : this.bots.indexOf(name);
      if (name !== null && index < 0) throw new Error(`no bot ${name}; valid: ${this.bots.join(", ")}`);
      this.tensor("assignment")[seat] = index;
    }

    actBots() { this.core.act_bots(); }

    addPolicy(bytes, description) { return new Policy(this, bytes, description); }

    // CRC-32 of the state and of what is observed, continuing `before`.
    hash(before = 0) { return this.core.hash(before) >>> 0; }

    // Play seeded random actions in all seats without a bot; return the hash over all frames, continuing `before`.
    randomKeys(seed, frames, first = 0, before = 0) {
      return this.core.play_random(...halves(seed), first, frames, before) >>> 0;
    }
  }

  // A policy, with separate memory for every seat that it plays.
  class Policy {
    constructor(engine, bytes, description) {
      const core = engine.core, store = (length) => core.allocate(length);
      this.engine = engine;
      this.description = description;
      this.code = store(bytes.length);
      new Uint8Array(core.memory.buffer).set(bytes, this.code);
      this.weights = this.code + description.codeBytes;
      this.scratch = store(4 * description.scratchWords + 16);
      this.noise = store(4 * engine.actionSize);
      this.bounds = store(8 * engine.actionSize + 4);
      this.memories = Array.from({ length: engine.seats }, () => store(4 * description.memoryWords + 16));
      this.space = ["multi_binary", "categorical", "box"].indexOf(description.head.kind);
      this.readouts = new Array(engine.seats).fill(null);
      const { low, high } = engine.description.action;
      this.numbers(this.bounds, low.length * 2).set([...low, ...high]);
      for (let seat = 0; seat < engine.seats; seat++) this.reset(seat);
    }

    numbers(address, length) { return new Float32Array(this.engine.core.memory.buffer, address, length); }

    // Forget what was seen: at the start of a match, or of a set of matches.
    reset(seat) {
      this.numbers(this.memories[seat], this.description.memoryWords).fill(0);
      this.readouts[seat] = null;
    }

    // Write the action of a seat; without `uniforms` the noise of sampled actions is drawn by Math.random.
    act(seat, { deterministic = false, uniforms = null } = {}) {
      const { core, actionSize } = this.engine, { head, readout } = this.description;
      const scratch = this.numbers(this.scratch, this.description.scratchWords);
      for (const [name, word, size] of this.description.entries) {
        const seen = this.engine.tensor(`observations.${name}`);
        scratch.set(seen.subarray(seat * size, (seat + 1) * size), word);
      }
      core.policy_run(this.code, this.description.codeWords, this.weights, this.scratch, this.memories[seat]);
      if (readout) this.readouts[seat] = scratch.slice(readout.probabilities, readout.probabilities + readout.classes.length);
      if (!deterministic) {
        const draw = head.kind === "box" ? normal : Math.random;
        this.numbers(this.noise, actionSize).set(uniforms || Array.from({ length: actionSize }, draw));
      }
      core.policy_choose(this.scratch + 4 * head.parameters, this.space, seat, deterministic ? 0 : this.noise, this.bounds);
    }

    // Parameters of the action distribution of the last `act`: logits, or means and log standard deviations.
    parameters() {
      const { parameters, size } = this.description.head;
      return this.numbers(this.scratch + 4 * parameters, size).slice();
    }

    // Who the policy takes the opponent for: the probability of each class, after `act`; null if it does not classify.
    readout(seat) {
      return this.readouts[seat] && { classes: this.description.readout.classes, probabilities: this.readouts[seat] };
    }
  }

  const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

  async function load(bytes, description) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Engine(instance, description);
  }

  return { load };
})();

if (typeof module !== "undefined") module.exports = LudusEngine;
