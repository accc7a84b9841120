// Declarations of the part of AscendC that kernels are printed in, for an A2, as the public manual gives the prototypes:
// names, parameter types, constructors, and the data types that an operation takes. Nothing here has a body; a kernel is
// parsed against this file and never linked. It knows nothing of kernelgen: that the two agree is what is checked.
#pragma once

typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef _Float16 half;

// The scalar unit has no arithmetic of this type: ToFloat and ToBfloat16 are the ways in and out.
struct bfloat16_t {
    uint16_t bits;
};

#define __gm__
#define __global__
#define __aicore__
typedef __gm__ uint8_t* GM_ADDR;

enum KernelMetaType { KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIC_1_2 };
void ascendc_kernel_type(KernelMetaType type);
#define KERNEL_TASK_TYPE_DEFAULT(type) ascendc_kernel_type(type)

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum QuantMode_t { NoQuant, F322F16, F322BF16 };
typedef int8_t TEventID;

// Both are the whole condition of an `if constexpr`, its parentheses included.
constexpr bool ascendc_is_cube = true;
#define ASCEND_IS_AIC constexpr(ascendc_is_cube)
#define ASCEND_IS_AIV constexpr(!ascendc_is_cube)

namespace AscendC {

template <typename A, typename B>
constexpr bool is_same = false;
template <typename A>
constexpr bool is_same<A, A> = true;
template <bool condition>
struct Where;
template <>
struct Where<true> {
    typedef void type;
};
// void, for a T that is one of the types; for others the overload does not exist.
template <typename T, typename... Types>
using If = typename Where<(is_same<T, Types> || ...)>::type;
template <typename T>
using If16 = If<T, int16_t, uint16_t>;
template <typename T>
using IfFloating = If<T, half, float>;
template <typename T>
using IfArithmetic = If<T, half, float, int16_t, int32_t>;
template <typename T>
using IfShifted = If<T, int16_t, uint16_t, int32_t, uint32_t>;
template <typename T>
using IfMoved = If<T, half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>;
template <typename T>
using IfCopied = If<T, half, bfloat16_t, float, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC };
enum class HardEvent : uint8_t {
    MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3, MTE1_V,
    V_MTE1, MTE2_M, M_MTE2, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MTE2_FIX,
    FIX_MTE2, FIX_S, M_S, FIX_MTE3
};
enum class RoundMode : uint8_t {
    CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class CO2Layout : uint8_t { NZ, ROW_MAJOR };

template <typename T>
struct LocalTensor {
    LocalTensor(TPosition pos, uint32_t addr, uint32_t tileSize);
    LocalTensor operator[](const uint32_t offset) const;
    T GetValue(const uint32_t index) const;
    void SetValue(const uint32_t index, const T value) const;
};
template <typename T>
struct GlobalTensor {
    GlobalTensor();
    void SetGlobalBuffer(__gm__ T* buffer, uint64_t bufferSize);
    GlobalTensor operator[](const uint64_t offset) const;
    T GetValue(const uint64_t offset) const;
    void SetValue(const uint64_t offset, T value);
};

// ---------------------------------------------------------------- parameters

struct BinaryRepeatParams {
    BinaryRepeatParams();
    BinaryRepeatParams(const uint8_t dstBlkStride, const uint8_t src0BlkStride, const uint8_t src1BlkStride,
                       const uint8_t dstRepStride, const uint8_t src0RepStride, const uint8_t src1RepStride);
};
struct UnaryRepeatParams {
    UnaryRepeatParams();
    UnaryRepeatParams(const uint16_t dstBlkStride, const uint16_t srcBlkStride, const uint8_t dstRepStride,
                      const uint8_t srcRepStride);
};
struct BrcbRepeatParams {
    BrcbRepeatParams();
    BrcbRepeatParams(const uint16_t dstBlkStride, const uint16_t dstRepStride);
};
struct CopyRepeatParams {
    CopyRepeatParams();
    CopyRepeatParams(const uint16_t dstStride, const uint16_t srcStride, const uint16_t dstRepeatSize,
                     const uint16_t srcRepeatSize);
};
struct DataCopyParams {
    DataCopyParams();
    DataCopyParams(const uint16_t count, const uint16_t len, const uint16_t srcStride, const uint16_t dstStride);
};
struct DataCopyExtParams {
    DataCopyExtParams();
    DataCopyExtParams(const uint16_t count, const uint32_t len, const uint32_t srcStride, const uint32_t dstStride,
                      const uint32_t reserved);
};
template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams();
    DataCopyPadExtParams(const bool isPad, const uint8_t leftPadding, const uint8_t rightPadding, T padding);
};
struct Nd2NzParams {
    Nd2NzParams();
    Nd2NzParams(const uint16_t ndNum, const uint16_t nValue, const uint16_t dValue, const uint16_t srcNdMatrixStride,
                const uint16_t srcDValue, const uint16_t dstNzC0Stride, const uint16_t dstNzNStride,
                const uint16_t dstNzMatrixStride);
};
template <typename T>
struct InitConstValueParams {
    InitConstValueParams();
    InitConstValueParams(const uint16_t repeatTimes, const uint16_t blockNum, const uint16_t dstGap, T initValue);
};
struct LoadData2DParams {
    LoadData2DParams();
    LoadData2DParams(const uint16_t startIndex, const uint8_t repeatTimes, const uint16_t srcStride, const uint8_t sid,
                     const uint16_t dstGap, const bool ifTranspose, const uint8_t addrMode);
};
template <typename T>
struct LoadData3DParamsV2 {
    LoadData3DParamsV2();
    LoadData3DParamsV2(const uint8_t padList[], const uint16_t l1H, const uint16_t l1W, const uint16_t channelSize,
                       const uint16_t kExtension, const uint16_t mExtension, const uint16_t kStartPt,
                       const uint16_t mStartPt, const uint8_t strideW, const uint8_t strideH, const uint8_t filterW,
                       const uint8_t filterH, const uint8_t dilationFilterW, const uint8_t dilationFilterH,
                       const bool enTranspose, const bool enSmallK, const T padValue);
};
struct MmadParams {
    MmadParams();
    MmadParams(const uint16_t m, const uint16_t n, const uint16_t k, const uint8_t unitFlag, const bool cmatrixSource,
               const bool cmatrixInitVal);
};
struct FixpipeParamsV220 {
    FixpipeParamsV220();
    FixpipeParamsV220(const uint16_t nSize, const uint16_t mSize, const uint16_t srcStride, const uint32_t dstStride,
                      const bool reluEn);
    FixpipeParamsV220(const uint16_t nSize, const uint16_t mSize, const uint16_t srcStride, const uint32_t dstStride,
                      const bool reluEn, const QuantMode_t quantPre, const int64_t deqScalar, const uint16_t ndNum,
                      const uint16_t srcNdStride, const uint16_t dstNdStride, const uint8_t unitFlag);
    FixpipeParamsV220(const uint16_t nSize, const uint16_t mSize, const uint16_t srcStride, const uint32_t dstStride,
                      const bool reluEn, const QuantMode_t quantPre, const int64_t deqScalar, const uint16_t ndNum,
                      const uint16_t srcNdStride, const uint16_t dstNdStride, const uint8_t unitFlag,
                      const bool isChannelSplit);
};
struct FixpipeConfig {
    CO2Layout format;
};
inline constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
inline constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

// ---------------------------------------------------------------- scalars

int64_t GetBlockIdx();
int64_t GetBlockNum();
int64_t GetSubBlockIdx();
float ToFloat(const bfloat16_t& bVal);
bfloat16_t ToBfloat16(const float& fVal);

// ---------------------------------------------------------------- vectors: the first `count` elements, or repeats

#define ASCENDC_BINARY(NAME, TYPES)                                                                              \
    template <typename T>                                                                                        \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,             \
                  const int32_t& count);                                                                         \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,             \
                  uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams& repeatParams);            \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,             \
                  uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams);
ASCENDC_BINARY(Add, IfArithmetic)
ASCENDC_BINARY(Sub, IfArithmetic)
ASCENDC_BINARY(Mul, IfArithmetic)
ASCENDC_BINARY(Div, IfFloating)
ASCENDC_BINARY(Max, IfArithmetic)
ASCENDC_BINARY(Min, IfArithmetic)
ASCENDC_BINARY(And, If16)
ASCENDC_BINARY(Or, If16)

#define ASCENDC_UNARY(NAME, TYPES)                                                                               \
    template <typename T>                                                                                        \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count);                   \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[],                         \
                  const uint8_t repeatTime, const UnaryRepeatParams& repeatParams);                              \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, const uint8_t repeatTime, \
                  const UnaryRepeatParams& repeatParams);
template <typename T>
using IfRelu = If<T, half, float, int32_t>;
ASCENDC_UNARY(Exp, IfFloating)
ASCENDC_UNARY(Ln, IfFloating)
ASCENDC_UNARY(Abs, IfFloating)
ASCENDC_UNARY(Reciprocal, IfFloating)
ASCENDC_UNARY(Sqrt, IfFloating)
ASCENDC_UNARY(Rsqrt, IfFloating)
ASCENDC_UNARY(Not, If16)
ASCENDC_UNARY(Relu, IfRelu)

#define ASCENDC_SCALAR(NAME, TYPES)                                                                              \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue,                    \
                  const int32_t& count);                                                                         \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask[],   \
                  const uint8_t repeatTime, const UnaryRepeatParams& repeatParams);                              \
    template <typename T, bool isSetMask = true>                                                                 \
    TYPES<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask,     \
                  const uint8_t repeatTime, const UnaryRepeatParams& repeatParams);
ASCENDC_SCALAR(Adds, IfArithmetic)
ASCENDC_SCALAR(Muls, IfArithmetic)
ASCENDC_SCALAR(Maxs, IfArithmetic)
ASCENDC_SCALAR(Mins, IfArithmetic)
ASCENDC_SCALAR(ShiftLeft, IfShifted)
ASCENDC_SCALAR(ShiftRight, IfShifted)
ASCENDC_SCALAR(LeakyRelu, IfFloating)

template <typename T, typename U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint32_t count);
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask[],
          const uint8_t repeatTime, const UnaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask,
          const uint8_t repeatTime, const UnaryRepeatParams& repeatParams);

template <typename T, typename U>
using IfCompared = typename Where<is_same<U, uint8_t> && (is_same<T, half> || is_same<T, float> || is_same<T, int32_t>)>::type;
template <typename T, typename U>
IfCompared<T, U> Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                         uint32_t count);
template <typename T, typename U, bool isSetMask = true>
IfCompared<T, U> Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                         const uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfCompared<T, U> Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
                         const uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfCompared<T, U> CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,
                               uint32_t count);
template <typename T, typename U, bool isSetMask = true>
IfCompared<T, U> CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,
                               const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfCompared<T, U> CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode,
                               const uint64_t mask, uint8_t repeatTime, const UnaryRepeatParams& repeatParams);

template <typename T, typename U>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                     const LocalTensor<T>& src1, SELMODE selMode, uint32_t count);
template <typename T, typename U>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                     SELMODE selMode, uint32_t count);
template <typename T, typename U, bool isSetMask = true>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                     const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask[], uint8_t repeatTime,
                     const BinaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                     const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask, uint8_t repeatTime,
                     const BinaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                     SELMODE selMode, uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams& repeatParams);
template <typename T, typename U, bool isSetMask = true>
IfFloating<T> Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                     SELMODE selMode, uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams);

template <typename T>
IfMoved<T> Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count);
template <typename T, bool isSetMask = true>
IfMoved<T> Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask[], const uint8_t repeatTime,
                     const uint16_t dstBlockStride, const uint8_t dstRepeatStride);
template <typename T, bool isSetMask = true>
IfMoved<T> Duplicate(const LocalTensor<T>& dst, const T& scalarValue, uint64_t mask, const uint8_t repeatTime,
                     const uint16_t dstBlockStride, const uint8_t dstRepeatStride);
template <typename T, bool isSetMask = true>
IfMoved<T> Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const uint8_t repeatTime,
                const CopyRepeatParams& repeatParams);
template <typename T, bool isSetMask = true>
IfMoved<T> Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask, const uint8_t repeatTime,
                const CopyRepeatParams& repeatParams);
template <typename T>
IfMoved<T> Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const uint8_t repeatTime,
                const BrcbRepeatParams& repeatParams);
template <typename T>
IfMoved<T> Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                  const uint32_t srcBaseAddr, const uint32_t count);
template <typename T>
If<T, half, int16_t, uint16_t> Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src);

#define ASCENDC_WHOLE(NAME, ...)                                                                                  \
    template <typename T, bool isSetMask = true>                                                                  \
    IfFloating<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],               \
                       const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,          \
                       const int32_t srcRepStride __VA_ARGS__);                                                   \
    template <typename T, bool isSetMask = true>                                                                  \
    IfFloating<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,                  \
                       const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,          \
                       const int32_t srcRepStride __VA_ARGS__);
ASCENDC_WHOLE(WholeReduceSum)
ASCENDC_WHOLE(WholeReduceMax, , ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX)
ASCENDC_WHOLE(WholeReduceMin, , ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX)

#define ASCENDC_BLOCK(NAME)                                                                                       \
    template <typename T, bool isSetMask = true>                                                                  \
    IfFloating<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,            \
                       const uint64_t mask[], const int32_t dstRepStride, const int32_t srcBlkStride,             \
                       const int32_t srcRepStride);                                                               \
    template <typename T, bool isSetMask = true>                                                                  \
    IfFloating<T> NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,            \
                       const int32_t mask, const int32_t dstRepStride, const int32_t srcBlkStride,                \
                       const int32_t srcRepStride);
ASCENDC_BLOCK(BlockReduceSum)
ASCENDC_BLOCK(BlockReduceMax)
ASCENDC_BLOCK(BlockReduceMin)

// ---------------------------------------------------------------- copies

template <typename T>
IfCopied<T> DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count);
template <typename T>
IfCopied<T> DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count);
template <typename T>
IfCopied<T> DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count);
template <typename T>
IfCopied<T> DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& repeatParams);
template <typename T>
IfCopied<T> DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams);
template <typename T>
IfCopied<T> DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams);
template <typename T>
IfCopied<T> DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& intriParams);
template <typename T>
IfCopied<T> DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& dataCopyParams,
                        const DataCopyPadExtParams<T>& padParams);
template <typename T>
IfCopied<T> DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& dataCopyParams);

// ---------------------------------------------------------------- products

template <typename T>
If<T, half, bfloat16_t> LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& loadDataParams);
template <typename T>
If<T, half, bfloat16_t> LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                 const LoadData3DParamsV2<T>& loadDataParams);
template <typename T>
IfMoved<T> InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& initConstValueParams);
template <typename T, typename U, typename S>
If<U, half, bfloat16_t> Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                             const MmadParams& mmadParams);
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
If<T, half, bfloat16_t, float> Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                                       const FixpipeParamsV220& intriParams);

// ---------------------------------------------------------------- order

template <HardEvent event>
void SetFlag(TEventID eventID);
template <HardEvent event>
void WaitFlag(TEventID eventID);
template <pipe_t pipe>
void PipeBarrier();
template <uint8_t modeId, pipe_t pipe>
void CrossCoreSetFlag(uint16_t flagId);
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t flagId);
void InitSocState();

}  // namespace AscendC
