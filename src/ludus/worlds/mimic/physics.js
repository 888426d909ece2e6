// The walker's physics in a page: the part of MuJoCo that a walker of ours uses, in double precision.
//
// A tree of rigid bodies with a free root and motorised hinges; spheres under the feet that touch a plane, with
// pyramidal friction cones; joint limits; Newton's method for the soft constraints; Euler or `implicitfast` steps. The
// equations are those of MuJoCo's documentation ("Computation"); `ludus.worlds.mimic.browser` writes the model's
// constants, and a test compares accelerations and walks with MuJoCo's own.

const WalkerPhysics = (() => {
  const GRAVITY_M_S2 = 9.81;
  const ROOT_DOFS = 6; // three of translation along the world's axes, three of rotation about the root's own

  class Physics {
    constructor(model) {
      const bodies = model.bodies.length, dofs = ROOT_DOFS + model.hinges.length;
      Object.assign(this, { model, bodies, dofs, friction: model.contact.friction });
      this.positions = new Float64Array(dofs + 1); // x, y, z, quaternion w, x, y, z, angles
      this.velocities = new Float64Array(dofs);
      this.torques = new Float64Array(model.hinges.length); // of the motors, in the last step
      this.place = new Float64Array(3 * bodies); // of the bodies' frames in the world
      this.turn = new Float64Array(9 * bodies); // rotation matrices, row after row
      this.axes = new Float64Array(3 * dofs); // of the rotating degrees of freedom, in the world
      // The degrees of freedom that move each body.
      this.paths = [];
      model.bodies.forEach((body, b) => {
        const own = b === 0 ? [0, 1, 2, 3, 4, 5] : model.hinges.flatMap((hinge, k) => (hinge.body === b ? [ROOT_DOFS + k] : []));
        this.paths.push(b === 0 ? own : [...this.paths[body.parent], ...own]);
      });
      this.bodyOf = Array.from({ length: dofs }, (_, dof) => (dof < ROOT_DOFS ? 0 : model.hinges[dof - ROOT_DOFS].body));
      this.mass = new Float64Array(dofs * dofs);
      this.bias = new Float64Array(dofs);
      this.smooth = new Float64Array(dofs); // forces besides those of constraints
      this.damping = new Float64Array(dofs); // how fast they fall with velocity
      this.warm = new Float64Array(dofs); // the last acceleration, where the solver begins
      const rows = 4 * model.spheres.length + 2 * model.hinges.length;
      this.rows = 0;
      this.jacobian = new Float64Array(rows * dofs);
      this.weight = new Float64Array(rows); // 1 / regularisation
      this.wanted = new Float64Array(rows); // reference acceleration
      this.miss = new Float64Array(rows); // constraint acceleration less the reference
      this.linear = new Float64Array(3 * dofs); // columns of a point's Jacobian
      this.angular = new Float64Array(3 * dofs); // inertia of a body times each axis
      // Angular velocity, and angular and linear acceleration of each frame, and of one point more.
      [this.spin, this.twist, this.drag] = [0, 1, 2].map(() => new Float64Array(3 * bodies + 3));
      this.hessian = new Float64Array(dofs * dofs);
      this.loads = new Float64Array(model.spheres.length); // N on each sphere, in the last step
    }

    set(positions, velocities) {
      this.positions.set(positions);
      this.velocities.set(velocities);
      this.loads.fill(0);
      this.move();
    }

    // Advance by one decision: some steps with the same controls, and with `pull`, a force {body, point, force} at a point
    // of a body's own frame, or null. As in training, the solver begins each decision anew.
    decide(controls, pull) {
      this.warm.fill(0);
      for (let step = 0; step < this.model.substeps; step++) this.step(controls, pull);
      this.move();
    }

    isBroken() { return !this.positions.every((value) => Math.abs(value) < 1e4) || !this.velocities.every((value) => Math.abs(value) < 1e4); }

    step(controls, pull) {
      const { dofs, velocities, mass, smooth, damping, model } = this;
      this.move();
      this.weigh();
      this.drive(controls);
      if (pull) this.addPull(pull);
      const factor = cholesky(mass, dofs), free = solved(factor, smooth, dofs);
      this.constrain();
      const acceleration = this.rows ? this.solve(free) : free;
      this.warm.set(acceleration);
      const force = smooth.slice();
      this.loads.fill(0);
      for (let row = 0; row < this.rows; row++) {
        const strength = -this.weight[row] * Math.min(this.miss[row], 0);
        if (this.owner[row] >= 0) this.loads[this.owner[row]] += strength;
        if (strength) for (let i = 0; i < dofs; i++) force[i] += strength * this.jacobian[row * dofs + i];
      }
      let change = acceleration;
      if (model.integrator === "implicitfast") {
        const implicit = mass.slice();
        for (let i = 0; i < dofs; i++) implicit[i * dofs + i] += model.step_s * damping[i];
        change = solved(cholesky(implicit, dofs), force, dofs);
      }
      for (let i = 0; i < dofs; i++) velocities[i] += model.step_s * change[i];
      this.integrate(model.step_s);
    }

    // Positions after a time at the present velocities.
    integrate(seconds) {
      const { positions, velocities } = this;
      for (let i = 0; i < 3; i++) positions[i] += seconds * velocities[i];
      const speed = Math.hypot(velocities[3], velocities[4], velocities[5]);
      if (speed > 1e-15) {
        const half = 0.5 * seconds * speed, s = Math.sin(half) / speed;
        const product = multiplied(positions.subarray(3, 7), [Math.cos(half), velocities[3] * s, velocities[4] * s, velocities[5] * s]);
        const size = Math.hypot(...product);
        for (let i = 0; i < 4; i++) positions[3 + i] = product[i] / size;
      }
      for (let i = ROOT_DOFS; i < this.dofs; i++) positions[i + 1] += seconds * velocities[i];
    }

    // Where all bodies are.
    move() {
      const { model, positions, place, turn, axes } = this;
      for (let i = 0; i < 3; i++) place[i] = positions[i];
      turn.set(rotation(positions.subarray(3, 7)));
      for (let i = 0; i < 3; i++) for (let k = 0; k < 3; k++) axes[3 * (3 + i) + k] = turn[3 * k + i];
      let dof = ROOT_DOFS;
      for (let b = 1; b < this.bodies; b++) {
        const { parent, place: offset } = model.bodies[b];
        for (let i = 0; i < 3; i++) place[3 * b + i] = place[3 * parent + i] + row(turn, 9 * parent + 3 * i, offset);
        let frame = turn.slice(9 * parent, 9 * parent + 9);
        for (; dof < this.dofs && this.bodyOf[dof] === b; dof++) {
          const { axis } = model.hinges[dof - ROOT_DOFS];
          for (let i = 0; i < 3; i++) axes[3 * dof + i] = row(frame, 3 * i, axis);
          const half = 0.5 * positions[dof + 1], s = Math.sin(half);
          frame = product(frame, rotation([Math.cos(half), axis[0] * s, axis[1] * s, axis[2] * s]));
        }
        turn.set(frame, 9 * b);
      }
    }

    // The world's coordinates of a point in a body's frame.
    pointOf(body, point) { return [0, 1, 2].map((i) => this.place[3 * body + i] + row(this.turn, 9 * body + 3 * i, point)); }

    // Columns of the Jacobian of a point that moves with a body, into `linear`.
    differentiate(body, point) {
      const { linear, axes, place, bodyOf } = this;
      for (const dof of this.paths[body]) {
        if (dof < 3) { for (let i = 0; i < 3; i++) linear[3 * dof + i] = i === dof ? 1 : 0; continue; }
        const b = bodyOf[dof], x = point[0] - place[3 * b], y = point[1] - place[3 * b + 1], z = point[2] - place[3 * b + 2];
        const ax = axes[3 * dof], ay = axes[3 * dof + 1], az = axes[3 * dof + 2];
        linear[3 * dof] = ay * z - az * y;
        linear[3 * dof + 1] = az * x - ax * z;
        linear[3 * dof + 2] = ax * y - ay * x;
      }
    }

    // The mass matrix, and the forces of gravity and of turning masses: what it takes for no acceleration.
    weigh() {
      const { model, dofs, velocities, axes, turn, place, mass, bias, linear, angular, spin, twist, drag } = this;
      mass.fill(0);
      bias.fill(0);
      for (let k = 0; k < model.hinges.length; k++) mass[(ROOT_DOFS + k) * (dofs + 1)] = model.hinges[k].armature;
      for (let b = 0, dof = 3; b < this.bodies; b++) {
        const { parent, mass: m, com, inertia: [ix, iy, iz] } = model.bodies[b], p = 3 * parent, own = 3 * b;
        // Angular velocity, and angular and linear acceleration of the frame where no velocity changes by itself.
        let wx = 0, wy = 0, wz = 0, ax = 0, ay = 0, az = 0;
        if (b > 0) {
          [wx, wy, wz, ax, ay, az] = [spin[p], spin[p + 1], spin[p + 2], twist[p], twist[p + 1], twist[p + 2]];
          this.carry(own, p, place[own] - place[p], place[own + 1] - place[p + 1], place[own + 2] - place[p + 2]);
        } else drag.fill(0, 0, 3);
        for (; dof < dofs && this.bodyOf[dof] === b; dof++) {
          const x = axes[3 * dof], y = axes[3 * dof + 1], z = axes[3 * dof + 2], rate = velocities[dof];
          if (b > 0) { // the root's rates are about its own axes, all at once
            ax += rate * (wy * z - wz * y);
            ay += rate * (wz * x - wx * z);
            az += rate * (wx * y - wy * x);
          }
          wx += rate * x;
          wy += rate * y;
          wz += rate * z;
        }
        spin[own] = wx; spin[own + 1] = wy; spin[own + 2] = wz;
        twist[own] = ax; twist[own + 1] = ay; twist[own + 2] = az;
        const t = 9 * b, cx = row(turn, t, com), cy = row(turn, t + 3, com), cz = row(turn, t + 6, com), end = 3 * this.bodies;
        this.carry(end, own, cx, cy, cz); // the acceleration of the centre of mass, behind those of the frames
        const fx = m * drag[end], fy = m * drag[end + 1], fz = m * (drag[end + 2] + GRAVITY_M_S2);
        const about = (i, k) => turn[t + 3 * i] * turn[t + 3 * k] * ix + turn[t + 3 * i + 1] * turn[t + 3 * k + 1] * iy + turn[t + 3 * i + 2] * turn[t + 3 * k + 2] * iz;
        const xx = about(0, 0), xy = about(0, 1), xz = about(0, 2), yy = about(1, 1), yz = about(1, 2), zz = about(2, 2);
        const hx = xx * wx + xy * wy + xz * wz, hy = xy * wx + yy * wy + yz * wz, hz = xz * wx + yz * wy + zz * wz; // angular momentum
        const mx = xx * ax + xy * ay + xz * az + wy * hz - wz * hy, my = xy * ax + yy * ay + yz * az + wz * hx - wx * hz, mz = xz * ax + yz * ay + zz * az + wx * hy - wy * hx;
        this.differentiate(b, [place[own] + cx, place[own + 1] + cy, place[own + 2] + cz]);
        const path = this.paths[b];
        for (let r = 0; r < path.length; r++) {
          const i = path[r], at = 3 * i, x = axes[at], y = axes[at + 1], z = axes[at + 2];
          bias[i] += linear[at] * fx + linear[at + 1] * fy + linear[at + 2] * fz;
          if (i >= 3) {
            bias[i] += x * mx + y * my + z * mz;
            angular[at] = xx * x + xy * y + xz * z;
            angular[at + 1] = xy * x + yy * y + yz * z;
            angular[at + 2] = xz * x + yz * y + zz * z;
          }
          for (let c = 0; c <= r; c++) {
            const k = path[c];
            let value = m * dot(linear, at, linear, 3 * k);
            if (i >= 3 && k >= 3) value += dot(axes, 3 * k, angular, at);
            mass[i * dofs + k] += value;
            if (i !== k) mass[k * dofs + i] += value;
          }
        }
      }
    }

    // The acceleration of a point that a frame carries, from that of the frame: a + alpha x r + w x (w x r).
    carry(into, from, x, y, z) {
      const { spin, twist, drag } = this, wx = spin[from], wy = spin[from + 1], wz = spin[from + 2];
      const vx = wy * z - wz * y, vy = wz * x - wx * z, vz = wx * y - wy * x;
      drag[into] = drag[from] + twist[from + 1] * z - twist[from + 2] * y + wy * vz - wz * vy;
      drag[into + 1] = drag[from + 1] + twist[from + 2] * x - twist[from] * z + wz * vx - wx * vz;
      drag[into + 2] = drag[from + 2] + twist[from] * y - twist[from + 1] * x + wx * vy - wy * vx;
    }

    // Forces of motors and of passive damping.
    drive(controls) {
      const { model, smooth, damping, bias, positions, velocities, torques } = this;
      for (let i = 0; i < this.dofs; i++) { smooth[i] = -bias[i]; damping[i] = 0; }
      model.hinges.forEach(({ gain, stiffness, servo_damping, limit, damping: passive }, k) => {
        const dof = ROOT_DOFS + k, rate = velocities[dof];
        const asked = gain * controls[k] - stiffness * positions[dof + 1] - servo_damping * rate;
        const torque = Math.min(Math.max(asked, -limit), limit);
        torques[k] = torque;
        smooth[dof] += torque - passive * rate;
        damping[dof] = passive + (Math.abs(asked) < limit ? servo_damping : 0);
      });
    }

    addPull({ body, point, force }) {
      this.differentiate(body, this.pointOf(body, point));
      for (const dof of this.paths[body]) this.smooth[dof] += dot(this.linear, 3 * dof, force, 0);
    }

    // Rows of the constraints that are active: joint limits, and four edges of the friction pyramid of each contact.
    constrain() {
      const { model, dofs, positions, jacobian, linear, friction } = this;
      this.rows = 0;
      this.owner = [];
      const add = (distance, weight0, rules, owner) => {
        const r = this.rows++, line = jacobian.subarray(r * dofs, (r + 1) * dofs), impedance = impedanceAt(distance, rules.solimp);
        let speed = 0;
        for (let i = 0; i < dofs; i++) speed += line[i] * this.velocities[i];
        const time = Math.max(rules.solref[0], 2 * model.step_s), damped = rules.solref[1], most = rules.solimp[1];
        this.weight[r] = impedance / ((1 - impedance) * weight0);
        this.wanted[r] = (-2 / (most * time)) * speed - (impedance / (most * most * time * time * damped * damped)) * distance;
        this.owner.push(owner);
      };
      model.hinges.forEach((hinge, k) => {
        const angle = positions[ROOT_DOFS + 1 + k];
        for (const [distance, sign] of [[angle - hinge.range[0], 1], [hinge.range[1] - angle, -1]]) {
          if (distance >= 0) continue;
          const begin = this.rows * dofs;
          jacobian.fill(0, begin, begin + dofs);
          jacobian[begin + ROOT_DOFS + k] = sign;
          add(distance, hinge.weight0, model.limits, -1);
        }
      });
      model.spheres.forEach(({ body, place, radius, weight0 }, s) => {
        const point = this.pointOf(body, place), distance = point[2] - radius;
        if (distance >= 0) return;
        point[2] -= radius + 0.5 * distance;
        this.differentiate(body, point);
        for (const [axis, sign] of [[1, 1], [1, -1], [0, -1], [0, 1]]) {
          const begin = this.rows * dofs;
          jacobian.fill(0, begin, begin + dofs);
          for (const dof of this.paths[body]) jacobian[begin + dof] = linear[3 * dof + 2] + sign * friction * linear[3 * dof + axis];
          add(distance, 2 * friction * friction * (1 + friction * friction) * weight0, model.contact, s);
        }
      });
    }

    // The acceleration x that minimises (x - free)' M (x - free) / 2 + sum of D min(J x - wanted, 0)^2 / 2, by Newton's
    // method with exact line search, with as many iterations as in training.
    solve(free) {
      const { model, dofs, rows, mass, jacobian, weight, miss } = this;
      const scale = 1 / (model.mean_inertia * dofs);
      const start = (x) => {
        const pull = this.pulled(x, free);
        this.measure(x);
        return 0.5 * inner(pull, x.map((value, i) => value - free[i])) + this.penalty();
      };
      const fromFree = start(free), fromWarm = start(this.warm);
      const x = fromFree < fromWarm ? free.slice() : this.warm.slice();
      let cost = Math.min(fromFree, fromWarm), pull = this.pulled(x, free);
      this.measure(x);
      const rates = new Float64Array(rows);
      for (let iteration = 0; iteration < model.iterations; iteration++) {
        const search = this.direction(pull);
        for (let r = 0; r < rows; r++) rates[r] = dotRow(jacobian, r * dofs, search, dofs);
        const along = matrixTimes(mass, search, dofs);
        const size = this.searched(inner(search, pull), inner(search, along), rates, (model.tolerance * model.line_tolerance * Math.sqrt(inner(search, search))) / scale);
        if (size === 0) break;
        for (let i = 0; i < dofs; i++) { x[i] += size * search[i]; pull[i] += size * along[i]; }
        for (let r = 0; r < rows; r++) miss[r] += size * rates[r];
        let distance = 0;
        for (let i = 0; i < dofs; i++) distance += 0.5 * pull[i] * (x[i] - free[i]);
        const now = distance + this.penalty(), slope = this.gradient(pull);
        if (scale * (cost - now) < model.tolerance || scale * Math.sqrt(inner(slope, slope)) < model.tolerance) break;
        cost = now;
      }
      return x;
    }

    pulled(x, free) { return matrixTimes(this.mass, x.map((value, i) => value - free[i]), this.dofs); }

    measure(x) { for (let r = 0; r < this.rows; r++) this.miss[r] = dotRow(this.jacobian, r * this.dofs, x, this.dofs) - this.wanted[r]; }

    penalty() {
      let sum = 0;
      for (let r = 0; r < this.rows; r++) if (this.miss[r] < 0) sum += 0.5 * this.weight[r] * this.miss[r] * this.miss[r];
      return sum;
    }

    gradient(pull) {
      const { dofs, jacobian, weight, miss } = this, slope = pull.slice();
      for (let r = 0; r < this.rows; r++) {
        if (miss[r] < 0) for (let i = 0; i < dofs; i++) slope[i] += weight[r] * miss[r] * jacobian[r * dofs + i];
      }
      return slope;
    }

    // Newton's direction.
    direction(pull) {
      const { dofs, jacobian, weight, miss, hessian } = this;
      hessian.set(this.mass);
      for (let r = 0; r < this.rows; r++) {
        if (miss[r] >= 0) continue;
        for (let i = 0; i < dofs; i++) {
          const value = weight[r] * jacobian[r * dofs + i];
          if (value) for (let k = 0; k < dofs; k++) hessian[i * dofs + k] += value * jacobian[r * dofs + k];
        }
      }
      return solved(cholesky(hessian, dofs), this.gradient(pull).map((value) => -value), dofs);
    }

    // The size of the best step along a direction: the root of a piecewise linear, increasing slope.
    searched(slope0, curve0, rates, enough) {
      const { miss, weight } = this;
      let low = 0, high = Infinity, size = 0;
      for (let tries = 0; tries <= this.model.line_iterations; tries++) {
        let slope = slope0 + size * curve0, curve = curve0;
        for (let r = 0; r < this.rows; r++) {
          const at = miss[r] + size * rates[r];
          if (at < 0) { slope += weight[r] * rates[r] * at; curve += weight[r] * rates[r] * rates[r]; }
        }
        if (Math.abs(slope) < enough) break;
        if (slope < 0) low = size; else high = size;
        const next = size - slope / curve;
        size = next > low && next < high ? next : high < Infinity ? 0.5 * (low + high) : 2 * size;
      }
      return size;
    }
  }

  // How stiff a constraint is: from solimp[0] at a distance of 0 to solimp[1] at the width solimp[2], along a curve.
  function impedanceAt(distance, [low, high, width, middle, power]) {
    const x = Math.min(Math.abs(distance) / width, 1);
    if (x >= 1) return high;
    const y = power === 1 ? x : x <= middle ? x ** power / middle ** (power - 1) : 1 - (1 - x) ** power / (1 - middle) ** (power - 1);
    return low + y * (high - low);
  }

  // --- small linear algebra ---

  const dot = (a, i, b, k) => a[i] * b[k] + a[i + 1] * b[k + 1] + a[i + 2] * b[k + 2];
  const row = (matrix, begin, v) => matrix[begin] * v[0] + matrix[begin + 1] * v[1] + matrix[begin + 2] * v[2];

  function inner(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  function dotRow(matrix, begin, v, size) {
    let sum = 0;
    for (let i = 0; i < size; i++) sum += matrix[begin + i] * v[i];
    return sum;
  }

  function matrixTimes(matrix, v, size) {
    const result = new Float64Array(size);
    for (let i = 0; i < size; i++) result[i] = dotRow(matrix, i * size, v, size);
    return result;
  }

  function product(a, b) {
    const result = new Float64Array(9);
    for (let i = 0; i < 3; i++) for (let k = 0; k < 3; k++) result[3 * i + k] = a[3 * i] * b[k] + a[3 * i + 1] * b[3 + k] + a[3 * i + 2] * b[6 + k];
    return result;
  }

  function multiplied([a, b, c, d], [w, x, y, z]) {
    return [a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x, a * z + b * y - c * x + d * w];
  }

  // The rotation matrix of a unit quaternion (w, x, y, z), row after row.
  function rotation([w, x, y, z]) {
    return [
      w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
      2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
      2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z,
    ];
  }

  function cholesky(matrix, size) {
    const factor = new Float64Array(size * size);
    for (let i = 0; i < size; i++) {
      for (let k = 0; k <= i; k++) {
        let sum = matrix[i * size + k];
        for (let j = 0; j < k; j++) sum -= factor[i * size + j] * factor[k * size + j];
        factor[i * size + k] = i === k ? Math.sqrt(sum) : sum / factor[k * size + k];
      }
    }
    return factor;
  }

  function solved(factor, right, size) {
    const x = Float64Array.from(right);
    for (let i = 0; i < size; i++) {
      for (let k = 0; k < i; k++) x[i] -= factor[i * size + k] * x[k];
      x[i] /= factor[i * size + i];
    }
    for (let i = size - 1; i >= 0; i--) {
      for (let k = i + 1; k < size; k++) x[i] -= factor[k * size + i] * x[k];
      x[i] /= factor[i * size + i];
    }
    return x;
  }

  return Physics;
})();

if (typeof module !== "undefined") module.exports = WalkerPhysics;
