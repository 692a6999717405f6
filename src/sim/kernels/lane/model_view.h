/// The batched engine's model as the kernels see it: plain records in float, written once when the model is imported
/// (mujoco/import.cpp), read by every lane alike. No pointers inside records, so that the arrays are saved and uploaded
/// as they are.
///
/// "Body" here is a moving body: links that are welded together are one body, the world's static links are none. Body
/// frames are turned so that a hinge's axis is a coordinate axis where possible.
#pragma once
#include "sim/kernels/lane/device.h"

namespace cohort::sim {

enum BodyKind : int { kBodyJoints = 0, kBodyFree = 1, kBodyBall = 2, kBodyMocap = 3 };

struct BodyRecord {
  int kind;                      ///< BodyKind; kBodyBall: one ball joint and nothing else
  int parent;                    ///< body, or -1 for the world; parents come first
  int root;                      ///< first body of the tree: its position is the tree's reference point
  int first_joint, joint_count;  ///< hinge and slide joints, in order
  int first_dof, dof_count;
  int qpos;               ///< first coordinate of a free or ball joint
  int mocap;              ///< kBodyMocap: which
  float pos[3];           ///< m, in the parent's frame, at zero coordinates
  float rot[9];           ///< likewise
  int turned;             ///< rot is not the identity
  float mass;             ///< kg
  float com[3];           ///< m, in the body's frame
  float inertia[6];       ///< kg m^2 about com, in the body's frame: xx yy zz xy xz yz
  float gravcomp_mass;    ///< kg whose weight is compensated
  float gravcomp_com[3];  ///< m, where
  float anchor[3];        ///< m, position of a ball joint
  float stiffness;        ///< of a free or ball joint's spring, N/m and N m/rad
  int stands_alone;  ///< kBodyFree that no joint hangs on: implicitfast takes the whole derivative of its bias force
};

enum JointAxis : int { kAxisX = 0, kAxisY = 1, kAxisZ = 2, kAxisAny = 3 };

/// Solver parameters of a scalar constraint (docs of MuJoCo, "Solver parameters"), with what does not change worked
/// out.
struct SolverRecord {
  float stiffness;      ///< K of the reference acceleration, 1/s^2
  float damping;        ///< B, 1/s
  float dmin, dmax;     ///< impedance
  float inverse_width;  ///< 1/m; 0 when the impedance is constant, dmin
  float midpoint, power;
};

struct JointRecord {
  int hinge;  ///< 1: hinge, 0: slide
  int body, qpos, dof;
  int axis_kind;  ///< JointAxis
  float sign;     ///< of a coordinate axis
  float axis[3];  ///< unit, in the body's frame
  float pos[3];   ///< m, in the body's frame
  int has_pos;
  float qpos0;  ///< coordinate at which the body stands at pos and rot
  float stiffness, spring_qpos;
  int force_limited;
  float force_lower, force_upper;  ///< of all actuators together
};

struct DofRecord {
  int body;
  int parent;  ///< dof, or -1
  float armature, damping;
  int lifted_by_actuators;  ///< gravity compensation counts as a force of the actuators
  /// MuJoCo keeps no other entry of the inertia matrix in its row (several slides of a body, balls of equal inertias):
  /// implicitfast leaves derivatives there out, as it does.
  int uncoupled;
};

/// A limit of a hinge, slide (lower and upper), ball joint, or tendon.
struct LimitRecord {
  int kind;                    ///< 0: scalar joint, 1: ball, 2: tendon
  int index;                   ///< qpos of the joint, or tendon
  int first_dof, dof_count;    ///< into row_dof
  int fits;                    ///< the inertia matrix has an entry for every two of its dofs
  float lower, upper, margin;  ///< ball: upper is the greatest angle
  float inverse_weight;
  SolverRecord solver;
};

/// Friction loss of a dof or tendon.
struct FrictionRecord {
  int tendon;                ///< -1: of a dof
  int first_dof, dof_count;  ///< into row_dof
  int fits;                  ///< the inertia matrix has an entry for every two of its dofs
  float loss;                ///< N, N m
  float inverse_weight;
  SolverRecord solver;
};

/// One term of a fixed tendon, or of a joint transmission: coefficient times a scalar joint. Of a computed
/// transmission: a dof; qpos is -1, and the coefficient of a site's wrench is +1 for a dof that moves the site, -1 for
/// one that moves the reference site. Of a spatial tendon likewise, or of an actuator that pulls one.
struct WrapRecord {
  int qpos, dof;
  float coefficient;
};

struct TendonRecord {
  int spatial;  ///< 1: a path, 0: a fixed tendon
  int first_wrap, wrap_count;
  int first_segment, segment_count;  ///< of the path
  float stiffness, damping;
  float spring_lower, spring_upper;  ///< m; no force between them
  float armature;                    ///< kg, kg m^2: inertia along its length
  int force_limited;
  float force_lower, force_upper;  ///< of all actuators together
};

enum SegmentShape : int { kStraight = 0, kAroundSphere = 1, kAroundCylinder = 2 };
enum SegmentSide : int { kSideNone = 0, kSideOutside = 1, kSideInside = 2, kSideMoves = 3 };

/// A segment of a spatial tendon from one site to the next, straight or around a geom between them.
struct SegmentRecord {
  int shape;                    ///< SegmentShape
  int site1, site2;             ///< frames
  int geom;                     ///< frame of the geom, or -1
  int link1, link2, geom_link;  ///< of the sites and the geom
  int side;                     ///< frame of the side site, or -1
  int side_kind;   ///< SegmentSide: kSideInside: the side site lies in the geom, the path touches it from within;
                   ///< kSideMoves: the pose decides
  float radius;    ///< m
  float scale;     ///< 1 / divisor of the pulley before it
  int first_move;  ///< into segment_move: for each of the tendon's wraps, which of its ends the dof moves, kMoves...
};
enum SegmentMove : int { kMovesSite1 = 1, kMovesGeom = 2, kMovesSite2 = 4 };

enum ActuatorDynamics : int {
  kDynamicsNone = 0,
  kDynamicsIntegrator = 1,
  kDynamicsFilter = 2,
  kDynamicsFilterExact = 3,
  kDynamicsMuscle = 4
};

/// How an actuator's force reaches the dofs. Sums have constant arms; the arms of the others are computed in every
/// step.
enum TransmissionKind : int {
  kTransmissionSum = 0,     ///< scalar joint or fixed tendon: the wraps' coefficients, gear included
  kTransmissionBall = 1,    ///< ball joint: three arms
  kTransmissionFree = 2,    ///< free joint: six arms
  kTransmissionSite = 3,    ///< a wrench at a site, or one between a site and a reference site
  kTransmissionTendon = 4,  ///< spatial tendon: its arms times the gear
  /// A rod from a crank's site to a slider: a wrap for every dof that moves an end, whose coefficient says which
  /// (SliderCrankEnd).
  kTransmissionSliderCrank = 5,
  /// Adhesion: pulls at all contacts of a body along their normals, an even share at each; a wrap for every dof.
  kTransmissionContacts = 6,
};
enum SliderCrankEnd : int { kMovesCrank = 1, kMovesSlider = 2 };

/// A muscle's force over its length and velocity (MuJoCo's documentation, "Muscles"). Lengths are relative to the
/// optimum: offset + per_length * (length - shortest).
struct MuscleCurve {
  float shortest;      ///< m, lower end of the actuator's range of lengths
  float offset;        ///< relative length there
  float per_length;    ///< 1/m
  float per_speed;     ///< s/m: 1 is the greatest speed of shortening
  float force;         ///< N, of the whole muscle at rest, at its optimum
  float lmin, lmax;    ///< relative lengths outside of which there is no active force
  float fvmax, fpmax;  ///< active force when it is lengthened, passive force at lmax, relative to `force`
};
struct MuscleRecord {
  int has_gain, has_bias;  ///< whether the curves count: active force, passive force
  MuscleCurve gain, bias;
  float activation, deactivation;  ///< s, of kDynamicsMuscle
  float smoothing;                 ///< width of the change from one to the other; 0: at once
};

struct ActuatorRecord {
  int ctrl, act;               ///< act -1: none
  int dynamics;                ///< ActuatorDynamics
  int transmission;            ///< TransmissionKind
  int first_wrap, wrap_count;  ///< of its length
  int target;                  ///< qpos of a ball joint's or free joint's quaternion; frame of a site or crank; a link
  int reference;               ///< frame of the reference site or of the slider, which moves along its z; or -1
  int tendon;                  ///< that it pulls, or -1
  int muscle;                  ///< its curves and times, or -1
  int in_parent;               ///< ball and free joints: the gear is given in the parent's frame
  float rod;                   ///< m, length of a slider-crank's
  float gear[6];               ///< not for sums
  int act_early;
  float period;                  ///< of the length of a position servo that turns, or 0
  float tau;                     ///< s
  float exact_factor;            ///< tau (1 - exp(-timestep / tau)), for kDynamicsFilterExact
  float gain[3], bias[3];        ///< constant, times length, times velocity
  int gain_values, bias_values;  ///< how many of them this kind of actuator has
  int ctrl_limited, force_limited, act_limited;
  float ctrl_lower, ctrl_upper, force_lower, force_upper, act_lower, act_upper;
};

/// A control that acts, or a number of the sensor data that is told, some steps later.
struct DelayRecord {
  int sensor;  ///< 0: channel is a control, 1: of the sensor data
  int channel;
  int halves;  ///< of a step behind its start, where it arrives: 0, for the later stages of RK4 1 and 2; these share rows
  int first_row, count;  ///< of the history: the value of the step before, then older ones
  int taps;              ///< how many of them count
  int lag[4];            ///< steps, 1: the step before
  float weight[4];
};

/// A sensor that is read once in a while, and may tell later. Its rows of the history: when it is due, ages of the last
/// `count` readings, then these, the newest first; times and ages in steps, and less what they are at a reset, so that
/// rows of zeros are a reset's.
struct IntervalRecord {
  int address, dim;  ///< in the sensor data
  int first_row, count;
  int interpolation;  ///< 0: the older one's, 1: linear, 2: cubic
  float period;       ///< steps
  float start;        ///< steps from the reading before a reset to it
  float lag;          ///< steps, 0: none
};

/// Where a link of the file is: a frame fixed in a body (or in the world).
struct LinkRecord {
  int body;  ///< -1: the world
  float pos[3];
  float quat[4];
  float com[3];      ///< m, the link's centre of mass in the body's frame
  float mass;        ///< kg
  float inertia[6];  ///< about com, along the body's axes
  float gravcomp;    ///< share of its weight that is compensated
};

/// A frame fixed in a body or in the world: a site, an anchor.
struct FrameRecord {
  int body;      ///< -1: the world
  float pos[3];  ///< m, in the body's frame
  float rot[9];
  float quat[4];
};

/// Drag of a link by the box of its inertia (MuJoCo's documentation, "Fluid forces", inertia model).
struct FluidRecord {
  int body;
  float pos[3];  ///< m, the link's centre of mass in the body's frame
  float rot[9];  ///< axes of its inertia
  // Powers of the mass, for one inertia: -3/2, -1/2, -5/2, -1.
  float angular_linear;     ///< N m s, viscous
  float linear_linear;      ///< N s / m, viscous
  float angular_square[3];  ///< N m s^2
  float linear_square[3];   ///< N s^2 / m^2
};

enum GeomShape : int {
  kPlane = 0,
  kHeightField = 1,
  kSphere = 2,
  kCapsule = 3,
  kEllipsoid = 4,
  kCylinder = 5,
  kBox = 6,
  kMesh = 7
};

/// Vertices of a mesh lie in blocks of so many: their x, then their y, then their z; the last block is filled up with
/// the first vertex.
inline constexpr int kVertexBlock = 16;

/// A mesh as the narrow phases see it: the corners of its convex hull.
struct MeshRecord {
  int first_vertex, vertex_count;  ///< first_vertex: into mesh_vertex, where the mesh's blocks begin
  int first_edge;  ///< into mesh_edge: for every vertex where its neighbours begin (from there on), then lists that -1
                   ///< ends; -1: there is no hull, every vertex is every other's neighbour
  int first_face, face_count;            ///< into mesh_face; 0: the faces are not known
  int first_vertex_face;                 ///< into mesh_edge: as first_edge, the faces around every vertex
  int first_direction, direction_count;  ///< into mesh_direction, threes: unit, of the edges between known faces
  int first_side, side_count;            ///< into mesh_side: the edges between known faces; 0: they do not close
};

/// An edge between two flat faces of a mesh.
struct SideRecord {
  float along[3];   ///< m, from begin to end
  int begin, end;   ///< vertices
  int left, right;  ///< faces; seen from outside, with the edge pointing up
  /// What an axis between these faces' normals can show more than they do (sat.h): how far the normals'
  /// ends are apart, and m, how far vertices are outside of the faces.
  float turn, beyond;
};

/// A flat face of a mesh.
struct FaceRecord {
  float normal[3];                 ///< unit, outwards
  float offset;                    ///< m, of its plane from the mesh's origin
  int first_corner, corner_count;  ///< into mesh_edge: vertices, counterclockwise seen from outside
};

struct HeightFieldRecord {
  int rows, cols, first;  ///< heights 0 to 1 by rows, into height
  float size[4];          ///< m: half width, half depth, height of 1, thickness below 0
};

struct GeomRecord {
  int shape;     ///< GeomShape
  int body;      ///< -1: the world
  int link;      ///< of the file
  int data;      ///< mesh or height field, of a ray_geom ray_mesh, or -1
  int id;        ///< of the file
  float pos[3];  ///< m, in the body's frame (in the world's, for a static geom)
  float rot[9];
  float size[3];  ///< m, as MuJoCo's geom_size
  float radius;   ///< m, of the bounding sphere; 0 for a plane
  float box[6];   ///< m, centre and half sizes of the bounding box, in the geom's frame; half sizes 0: none
};

/// What a ray sees of a mesh or height field: triangles near one another, with a sphere around them.
struct RayChunkRecord {
  float centre[3], radius;  ///< m, in the geom's frame
  int first, count;         ///< into ray_triangle, nines: a corner, and the edges from it to the others
};
struct RayMeshRecord {
  int first, count;  ///< into ray_chunk
};

/// Two geoms that may touch, with everything their contacts share.
struct PairRecord {
  int geom1, geom2;  ///< in the order of their shapes
  int kernel;        ///< which narrow phase, see collide.h
  int max_contacts;
  int dim;            ///< 1, 3, 4, 6
  float margin, gap;  ///< m
  float friction[5];
  float weight_tran, weight_rot;  ///< sums of the bodies' inverse weights
  SolverRecord solver;
  int friction_from;         ///< 0: the larger of both geoms, 1 or 2: that geom's, 3: the pair's own
  float friction_damping;    ///< B of the tangential rows of an elliptic contact, 1/s
  float mu;                  ///< of the regularized cone: friction[0] / sqrt(impratio)
  int fits;                  ///< every two dofs are on one chain: the inertia matrix has their entry
  int first_dof, dof_count;  ///< into row_dof and row_sign
  int by_axes;    ///< of polytopes: the lanes look along all axes (polytope_contacts.h, height_field_shapes.h)
  int as_before;  ///< the pair before moves the same bodies and has the same numbers: contacts may share groups
};

/// How a pair is looked at after its bounding spheres (near_pairs.h).
enum PairLook : int {
  kLookAtSpheres = 0,  ///< no further
  kLookAtPlane = 1,    ///< geom1 is one: it has no bounding sphere
  kLookAtRound = 2,    ///< both are spheres or capsules
};

/// What a second look at a pair needs, by itself: the PairRecord is read for few.
struct PairBoundRecord {
  int geom1, geom2;
  int root1, root2;  ///< of their bodies; -1: the world
  int look;          ///< PairLook
  float reach;       ///< m, margin + gap
  float bound;       ///< m, reach and the radii of both bounding spheres
  int separation;    ///< which of the remembered directions (separation.h) is this pair's, maybe others' too; -1: none
  /// Of round shapes, in the order of PairSpheresRecord: half lengths, m, and the square of round_touch, m^2.
  float half_low, half_high, touch_square;
};
/// Pairs are looked at by windows of so many: a bit for each.
inline constexpr int kPairsAtOnce = 64;
/// What every step reads of every pair.
struct PairSpheresRecord {
  int low, high;  ///< places of the geoms' positions, 3 numbers each; first that of the tree with the smaller root
  float square;   ///< m^2, of PairBoundRecord::bound
};
/// Consecutive pairs of a window, of the same trees: all of planes, all of one tree, or all of one body with another
/// tree.
struct PairRunRecord {
  int first, count;
  int look;       ///< kLookAtPlane: of planes
  int low, high;  ///< roots of the pairs' trees, the smaller one first; the world's is -1
  int geom;       ///< of the body, which is of the first tree
  /// m, around the position of `geom`: what is farther from it touches none of the body's geoms. 0: the run is too
  /// short to ask, or has no tree_box.
  float bound;
};
/// Most directions that an environment remembers.
inline constexpr int kMostSeparations = 64;

enum EqualityKind : int { kEqualityConnect = 0, kEqualityWeld = 1, kEqualityJoint = 2, kEqualityTendon = 3 };

/// Couples two scalar joints or fixed tendons by a polynomial, or holds two frames together.
struct EqualityRecord {
  int kind;                      ///< EqualityKind
  int first_wrap1, wrap_count1;  ///< the first coordinate
  int first_wrap2, wrap_count2;  ///< the second; none: 0
  float reference1, reference2;  ///< coordinates at qpos0
  float polynomial[5];
  int object1, object2;      ///< joints or tendons
  int frame1, frame2;        ///< connect: their positions meet; weld: their orientations as well
  int link1, link2;          ///< of the frames
  float torque_scale;        ///< weld: m per rad
  float weight;              ///< sum of the inverse weights
  float weight_rot;          ///< likewise, rotation
  int first_dof, dof_count;  ///< into row_dof: the wraps' dofs in order; frames: into row_sign too, +1: the dof moves
                             ///< the first frame only, -1: the second only, 0: both
  int fits;                  ///< the inertia matrix has an entry for every two of its dofs
  SolverRecord solver;
};

/// What a sensor measures.
enum SensorKind : int {
  kSensorClock,
  kSensorJointPos,
  kSensorJointVel,
  kSensorBallQuat,
  kSensorBallVel,
  kSensorTendonPos,
  kSensorTendonVel,
  kSensorActuatorPos,
  kSensorActuatorVel,
  kSensorActuatorForce,
  kSensorJointActuatorForce,
  kSensorTendonActuatorForce,
  kSensorFramePos,
  kSensorFrameQuat,
  kSensorFrameAxis,
  kSensorFrameLinVel,
  kSensorFrameAngVel,
  kSensorFrameLinAcc,
  kSensorFrameAngAcc,
  kSensorAccelerometer,
  kSensorGyro,
  kSensorVelocimeter,
  kSensorMagnetometer,
  kSensorForce,
  kSensorTorque,
  kSensorTouch,
  kSensorRangefinder,
  kSensorContact,
  kSensorSubtreeCom,
  kSensorSubtreeLinVel,
  kSensorSubtreeAngMom,
  kSensorCamProjection,
  kSensorLimitPos,
  kSensorLimitVel,
  kSensorLimitForce,
  kSensorDistance,
  kSensorNormal,
  kSensorFromTo,
};

enum ContactReduce : int { kReduceNone = 0, kReduceMinDist = 1, kReduceMaxForce = 2, kReduceNetForce = 3 };

/// In sensor_match: both ends of an equality count.
inline constexpr int kMatchBoth = 2;

struct SensorRecord {
  int kind;          ///< SensorKind
  int address, dim;  ///< into the sensor data
  float cutoff;      ///< 0: none
  int positive;      ///< the cutoff holds above only
  int index;         ///< coordinate, dof, tendon, actuator; FrameAxis: which axis; Limit...: which limit, -1: none
  int frame;         ///< -1: none
  int reference;     ///< frame, or -1
  int first_piece, piece_count;
  int first_match;  ///< into sensor_match: for every pair +1 when the second geom's side counts, -1 the first's, 0
                    ///< none; Force and Torque: then the same for every equality (+1: the first frame, kMatchBoth),
                    ///< then 1 for every link
  int shape;        ///< of the site that Touch and Contact look into; -1: no filter
  float size[3];    ///< m, of that site
  int fields;       ///< Contact, Rangefinder: bits of the fields in MuJoCo's order
  int reduce;       ///< Contact: ContactReduce
  int link;         ///< Rangefinder: geoms of this link do not count
  float image[4];   ///< CamProjection: pixels, focal lengths (the first negative) and centre
  int first_distance, distance_count;  ///< Distance, Normal, FromTo: the pairs of geoms of which it tells the nearest
};

/// Two geoms of which a sensor tells how far apart they are, whether they may touch or not.
struct DistanceRecord {
  PairRecord pair;  ///< geoms, kernel and margin, the most that is told; the rest counts for contacts only
  int swapped;      ///< the pair's first geom is the sensor's second
};

/// Mass that a sensor sums over: a whole body or the welded links of one that count.
struct PieceRecord {
  int body;  ///< -1: part of the world
  float mass;
  float com[3];      ///< m, in the body's frame
  float inertia[6];  ///< about com
};

enum IntegratorKind : int { kEuler = 0, kRk4 = 1, kImplicitFast = 3 };

struct OptionRecord {
  float timestep;     ///< s
  float gravity[3];   ///< m/s^2, 0 when gravity is disabled
  float wind[3];      ///< m/s
  float magnetic[3];  ///< global magnetic flux
  float impratio;
  float tolerance, ls_tolerance;
  float scale;     ///< 1 / (mean inertia * nv): what the solver's tolerances are relative to
  int integrator;  ///< IntegratorKind
  int elliptic;    ///< friction cones
  int newton;      ///< 1: Newton, 0: conjugate gradient
  int iterations, ls_iterations;
  int warmstart;
  int implicit_damping;  ///< Euler integrates joint damping implicitly
  int clamp_ctrl, actuation;
  int deepest_only;       ///< kConvexConvex: one contact, not those of faces that lie on each other
  int noslip_iterations;  ///< sweeps of solve/noslip.h, at most
  float noslip_tolerance;
};

/// What environments have of their own, ModelView::varies.
enum Varies : int {
  kVariesMass = 1,      ///< masses, centres, inertias of bodies
  kVariesFriction = 2,  ///< of contacts
  kVariesArmature = 4,
  kVariesDamping = 8,
  kVariesGain = 16,    ///< gains and biases of actuators
  kVariesCentre = 32,  ///< centres of mass of links; with kVariesMass
  kVariesGravity = 64,
  kVariesLoss = 128,       ///< friction loss of dofs
  kVariesStiffness = 256,  ///< of hinges and slides
  kVariesLimits = 512,     ///< ranges of joints
  kVariesForces = 1024,    ///< ranges of the actuators' forces
  kVariesGeoms = 2048,     ///< poses of geoms
  kVariesSizes = 4096,     ///< sizes of geoms; with kVariesGeoms
};
/// Values per body (mass, centre, inertia as in BodyRecord, compensated mass and its centre), piece of a sensor (mass,
/// centre, inertia), link in a fluid (as in FluidRecord), pair (friction, mu) and actuator (gain, bias).
inline constexpr int kBodyValues = 14, kPieceValues = 10, kFluidValues = 8, kPairValues = 6, kActuatorValues = 6;
/// Values per geom that may touch, and behind those per geom that rays meet, and where its parts begin: position (m) and
/// axes in the body's frame, size, radius and box as in GeomRecord.
inline constexpr int kGeomValues = 22, kOwnPos = 0, kOwnRot = 3, kOwnSize = 12, kOwnRadius = 15, kOwnBox = 16;

/// The most that ModelView::row_space may be.
inline constexpr int kMostRowSpaceRows = 64;

/// What constraints need: groups, and values of Constraints::pool, rows and cones.
struct ConstraintCapacity {
  int groups = 0, pool = 0, rows = 0, cones = 0;
};
/// What a model's constraints can need at most.
struct ConstraintCount {
  ConstraintCapacity others;                            ///< of all but contacts
  ConstraintCapacity largest;                           ///< of the contact that needs most of each
  long long groups = 0, pool = 0, rows = 0, cones = 0;  ///< of every contact that the pairs can make
};

/// Sizes and arrays. Everything points into memory that somebody else holds.
struct ModelView {
  int nq, nv, nu, na, nmocap, nbody, njnt, nlink, nlimit, nfriction, nwrap, ntendon, nact, ngeom, npair, nrowdof, neq,
      npattern, nframe, nfluid, nsensor, nsensordata, npiece, nmatch, nray, nmesh, nheightfield, nfilegeom, nsegment,
      nseparation, npairrun, nmuscle, ndelay, ninterval, ndistance;
  int row_space;  ///< environments with at most so many constraint rows are solved in row_space.h; an engine's choice
  int accelerations;     ///< some sensor needs the bodies' accelerations
  int keep_contacts;     ///< some sensor needs the contacts' places
  int nhistory;          ///< rows of the history of delays and intervals
  int delayed_sensors;   ///< some sensor tells later or not always: sensors are read in every step
  int adhesion;          ///< some actuator pulls at contacts: actuators act when the contacts are known
  int tree_boxes;        ///< some run of pairs has a bound
  int varies;            ///< bits of Varies
  int contact_capacity;  ///< contacts per environment; an engine's choice
  int counted;           ///< capacity_key of `constraints`, which an engine may have counted; 0: it has not
  ConstraintCount constraints;
  int damped;             ///< some dof has damping
  int lifting_actuators;  ///< some dof has lifted_by_actuators
  int tendon_inertia;     ///< some tendon has armature
  int tendon_limits;      ///< some tendon limits its actuators' force
  OptionRecord option;
  const BodyRecord* body;
  const JointRecord* joint;
  const DofRecord* dof;
  const int* pattern;        ///< columns of the inertia matrix's rows: ancestors of a dof, the dof itself last
  const int* pattern_start;  ///< (nv + 1) where each row begins
  const int* below;          ///< the same by columns: dofs below a dof, those that follow it
  const int* below_start;    ///< (nv + 1) where each column begins
  const LinkRecord* link;
  const LimitRecord* limit;
  const FrictionRecord* friction;
  const WrapRecord* wrap;
  const TendonRecord* tendon;
  const SegmentRecord* segment;
  const int* segment_move;
  const ActuatorRecord* actuator;
  const MuscleRecord* muscle;
  const DelayRecord* delay;
  const IntervalRecord* interval;
  const DistanceRecord* distance;
  const GeomRecord* geom;
  const PairRecord* pair;
  const PairBoundRecord* pair_bound;
  const PairSpheresRecord* pair_spheres;
  const PairRunRecord* pair_run;
  const int* pair_window;  ///< the first run of each window of kPairsAtOnce pairs, and the number of runs
  const int* row_dof;      ///< dofs of constraint rows, see PairRecord, LimitRecord, FrictionRecord, EqualityRecord
  const float* row_sign;   ///< +1: the dof moves a pair's second geom, -1: its first
  const EqualityRecord* equality;
  const FrameRecord* frame;
  const FluidRecord* fluid;
  const SensorRecord* sensor;
  const PieceRecord* piece;
  const int* sensor_match;
  const MeshRecord* mesh;
  const float* mesh_vertex;
  const int* mesh_edge;
  const FaceRecord* mesh_face;
  const float* mesh_direction;
  const SideRecord* mesh_side;
  const HeightFieldRecord* height_field;
  const float* height;
  const GeomRecord* ray_geom;  ///< what a rangefinder sees
  const RayMeshRecord* ray_mesh;
  const RayChunkRecord* ray_chunk;
  const float* ray_triangle;
  const float* qpos0;
  const float* qpos_spring;
};

/// Entry (i, j), j <= i, of a symmetric matrix stored as its lower triangle by rows.
COHORT_DEVICE inline constexpr int triangle(int i, int j) {
  return i * (i + 1) / 2 + j;
}

/// Rows of an equality.
COHORT_LANE int equality_dim(const EqualityRecord& e) {
  return e.kind == kEqualityConnect ? 3 : e.kind == kEqualityWeld ? 6 : 1;
}

/// Rows of a contact's constraint.
COHORT_LANE int contact_edges(int dim, bool elliptic) {
  return dim == 1 ? 1 : elliptic ? dim : 2 * (dim - 1);
}

/// A vertex of a mesh, in its frame.
COHORT_LANE void mesh_vertex(float* at, const ModelView& m, const MeshRecord& mesh, int v) {
  const float* p = m.mesh_vertex + mesh.first_vertex + v / kVertexBlock * 3 * kVertexBlock + v % kVertexBlock;
  for (int i = 0; i < 3; ++i) at[i] = p[i * kVertexBlock];
}

/// Most vertices, faces, and corners of a face, of a mesh whose contacts with a box the lanes compute.
inline constexpr int kMostLaneVertices = 64, kMostLaneFaces = 128, kMostLaneCorners = 16;
/// The same of a mesh and another, and its edges then (Euler's formula).
inline constexpr int kMostMeetingVertices = 32, kMostMeetingFaces = 32,
                     kMostMeetingSides = kMostMeetingVertices + kMostMeetingFaces - 2;

/// Whether two geoms are a box and such a mesh, or two such meshes.
COHORT_DEVICE inline bool are_lane_polytopes(const GeomRecord& g1, const GeomRecord& g2, const MeshRecord* meshes,
                                             const FaceRecord* faces) {
  const bool both = g1.shape == kMesh && g2.shape == kMesh;
  const auto few = [&](const GeomRecord& g) {
    if (g.shape != kMesh) return g.shape == kBox;
    const MeshRecord& mesh = meshes[g.data];
    bool small = mesh.side_count > 0 && mesh.vertex_count <= (both ? kMostMeetingVertices : kMostLaneVertices) &&
                 mesh.face_count <= (both ? kMostMeetingFaces : kMostLaneFaces) &&
                 (!both || mesh.side_count <= kMostMeetingSides);
    for (int f = 0; small && f < mesh.face_count; ++f) {
      small = faces[mesh.first_face + f].corner_count <= kMostLaneCorners;
    }
    return small;
  };
  return few(g1) && few(g2);
}

/// Where in an environment's values of mass those of pieces and of links in a fluid begin, behind the bodies'.
struct MassLayout {
  int piece, fluid, size;
};
COHORT_LANE MassLayout mass_layout(const ModelView& m) {
  const int piece = kBodyValues * m.nbody, fluid = piece + kPieceValues * m.npiece;
  return {piece, fluid, fluid + kFluidValues * m.nfluid};
}

}  // namespace cohort::sim
