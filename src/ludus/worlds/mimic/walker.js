// A walker that an agent plays in a page: what `ludus.worlds.mimic.env` does around the physics, for one walker.
//
// `data` comes from `ludus.worlds.mimic.browser`; `engine` is the page's engine, which holds the policy: it reads the
// observation there and leaves the action there. Desired speed and pushes are the visitor's.

const LiveWalker = (() => {
  class Walker {
    constructor(data, table, engine) {
      Object.assign(this, { data, table, engine, desired: data.speed, best: 0 });
      this.physics = new WalkerPhysics(data.physics);
      this.controls = new Float64Array(data.joints.length);
      this.restart();
    }

    // Begin an episode on the reference, at a phase of the stride and at the desired speed.
    restart(phase = 0) {
      Object.assign(this, { phase: Math.fround(phase), speed: Math.fround(this.desired), steps: 0, isFallen: false, isBroken: false });
      this.frame = this.reference();
      const { angles, velocities, root, rootVelocity } = this.frame;
      this.physics.set([0, 0, root[0], ...quaternionOf(root[1], root[2], root[3]), ...angles], [...rootVelocity, ...velocities]);
      this.observe();
    }

    get seconds() { return this.steps / this.data.rate_hz; }

    // Advance by one decision of the policy; `pull` is a force on a body, see `WalkerPhysics.decide`, or null.
    step(policy, pull) {
      policy.act(0, { deterministic: true });
      this.advance(this.engine.actions, pull);
    }

    // Advance by one decision with these actions.
    advance(actions, pull) {
      const given = Array.from(actions, (value) => Math.min(Math.max(value, -1), 1) || 0);
      const turned = this.isMirrored() ? reflected(given, this.data.joint_reflection) : given;
      turned.forEach((value, k) => { this.controls[k] = this.control(value, k); });
      this.physics.decide(this.controls, pull);
      this.steps++;
      this.moveReference();
      this.isBroken = this.physics.isBroken();
      this.isFallen = this.isBroken || this.hasFallen();
      this.observe();
    }

    // What an action means to the actuator of a joint; see `Controls` in physics.py.
    control(action, k) {
      const { kind, low, high, neutral } = this.data.action;
      if (kind === "torque") return action;
      return neutral[k] + action * (action > 0 ? high[k] - neutral[k] : neutral[k] - low[k]);
    }

    moveReference() {
      const { rate_hz, speed_change } = this.data, change = speed_change / rate_hz;
      this.phase = Math.fround(Math.fround(this.phase + Math.fround(1 / rate_hz / this.frame.period)) % 1);
      this.speed = Math.fround(this.speed + Math.fround(Math.min(Math.max(Math.fround(this.desired) - this.speed, -change), change)));
      this.frame = this.reference();
    }

    hasFallen() {
      const [roll, pitch] = this.orientation(), { lowest_m, largest_tilt } = this.data;
      return this.physics.positions[2] < lowest_m || Math.abs(roll) > largest_tilt || Math.abs(pitch) > largest_tilt;
    }

    isMirrored() { return this.data.mirror && this.phase >= 0.5; }

    // Roll, pitch and yaw of the root.
    orientation() {
      const [w, x, y, z] = this.physics.positions.subarray(3, 7);
      return [
        Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        Math.asin(Math.min(Math.max(2 * (w * y - x * z), -1), 1)),
        Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
      ];
    }

    // Write the observation vector; see observation.py.
    observe() {
      const { positions, velocities } = this.physics, { data } = this, angles = this.orientation();
      const phase = 2 * Math.PI * (data.mirror ? (2 * this.phase) % 1 : this.phase), ahead = Math.cos(angles[2]), left = Math.sin(angles[2]);
      const seen = [
        Math.cos(phase), Math.sin(phase), this.speed, this.desired, (positions[2] - data.standing_m) * 10, ...angles,
        velocities[0] * ahead + velocities[1] * left, velocities[1] * ahead - velocities[0] * left, velocities[2],
        velocities[3] / data.turn_unit, velocities[4] / data.turn_unit, velocities[5] / data.turn_unit,
        ...positions.subarray(7), ...Array.from(velocities.subarray(6), (value) => value / data.velocity_unit),
      ].map((value) => Math.min(Math.max(value, -data.largest), data.largest) || 0);
      this.engine.observations.set(this.isMirrored() ? reflected(seen, data.reflection) : seen);
    }

    // The reference at the present speed and phase; see reference.py.
    reference() {
      const { rows, columns, channels, speeds } = this.data.reference, joints = this.data.joints.length;
      const place = Math.min(Math.max((this.speed - speeds[0]) / Math.max(speeds[1] - speeds[0], 1e-9), 0), 1) * (rows - 1);
      const line = Math.min(Math.floor(place), Math.max(rows - 2, 0)), along = place - line, column = this.phase * columns;
      const first = Math.floor(column), across = column - first, start = first % columns, next = (start + 1) % columns, above = rows > 1 ? 1 : 0;
      const value = (row, at, channel) => this.table[((line + row) * columns + at) * channels + channel];
      const all = Array.from({ length: channels }, (_, channel) => {
        const slower = value(0, start, channel) * (1 - across) + value(0, next, channel) * across;
        const faster = value(above, start, channel) * (1 - across) + value(above, next, channel) * across;
        return slower * (1 - along) + faster * along;
      });
      const part = (begin, count) => all.slice(begin, begin + count);
      return {
        angles: part(0, joints), velocities: part(joints, joints), root: part(2 * joints, 4), rootVelocity: part(2 * joints + 4, 6), period: all[channels - 1],
      };
    }

    // How much it is like the reference, 0 to 1: the reward of training; see scoring.py.
    likeness() {
      const { angles, velocities, root, rootVelocity } = this.frame, { positions, velocities: own } = this.physics, { likeness } = this.data;
      const squares = (values, wanted) => wanted.reduce((sum, value, k) => sum + (values[k] - value) ** 2, 0);
      const pose = squares(positions.subarray(7), angles) + squares(this.orientation(), root.slice(1));
      const motion = squares(own.subarray(6), velocities) + squares(own.subarray(3, 6), rootVelocity.slice(3));
      return likeness.pose_share * Math.exp(-likeness.pose_scale * pose) + (1 - likeness.pose_share) * Math.exp(-likeness.velocity_scale * motion);
    }

    // Where the points of the figure are, and those of the reference beside them, as lists of [x, y, z] by name.
    points() { return pointsOf(this.physics, this.data.points); }

    ghost() {
      const { angles, root } = this.frame, { positions } = this.physics;
      this.shadow = this.shadow || new WalkerPhysics(this.data.physics);
      this.shadow.set([positions[0], positions[1], root[0], ...quaternionOf(root[1], root[2], root[3]), ...angles], this.shadow.velocities);
      return pointsOf(this.shadow, this.data.points);
    }
  }

  function pointsOf(physics, points) {
    return Object.fromEntries(Object.entries(points).map(([name, [body, place]]) => [name, physics.pointOf(body, place)]));
  }

  const reflected = (values, { source, sign }) => source.map((from, k) => sign[k] * values[from]);

  // (w, x, y, z) of turning by yaw about z, then pitch, then roll.
  function quaternionOf(roll, pitch, yaw) {
    const [cr, cp, cy] = [roll, pitch, yaw].map((angle) => Math.cos(angle / 2)), [sr, sp, sy] = [roll, pitch, yaw].map((angle) => Math.sin(angle / 2));
    return [cy * cp * cr + sy * sp * sr, cy * cp * sr - sy * sp * cr, cy * sp * cr + sy * cp * sr, sy * cp * cr - cy * sp * sr];
  }

  return Walker;
})();
