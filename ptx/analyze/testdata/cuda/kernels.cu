// Kernels as people write them, all of them right: the analyser must find no bug in them, however clang compiles them.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define TX __nvvm_read_ptx_sreg_tid_x()
#define TY __nvvm_read_ptx_sreg_tid_y()
#define BX __nvvm_read_ptx_sreg_ctaid_x()
#define BY __nvvm_read_ptx_sreg_ctaid_y()
#define NX __nvvm_read_ptx_sreg_ntid_x()
#define GX __nvvm_read_ptx_sreg_nctaid_x()
#define SYNC __nvvm_bar_sync(0)
#define BOUNDS(n) __attribute__((launch_bounds(n)))
extern "C" __global__ void BOUNDS(256) reduce(const float*x, float*y, int n){
  __shared__ float s[256];
  float a=0; for(int i=BX*256+TX;i<n;i+=256*GX) a+=x[i];
  s[TX]=a; SYNC;
  for(int d=128;d>0;d>>=1){ if(TX<d) s[TX]+=s[TX+d]; SYNC; }
  if(TX==0) y[BX]=s[0];
}
extern "C" __global__ void BOUNDS(256) reduce_seq(const float*x, float*y, int n){
  __shared__ float s[256];
  int i=BX*256+TX; s[TX]= i<n? x[i]:0; SYNC;
  for(int d=1;d<256;d*=2){ if(TX%(2*d)==0) s[TX]+=s[TX+d]; SYNC; }
  if(TX==0) y[BX]=s[0];
}
extern "C" __global__ void BOUNDS(256) gemm(const float*a,const float*b,float*c,int M,int N,int K){
  __shared__ float as[16][16], bs[16][17];
  int tx=TX%16, ty=TX/16; int r=BY*16+ty, q=BX*16+tx; float s=0;
  for(int k0=0;k0<K;k0+=16){
    as[ty][tx]= (r<M&&k0+tx<K)?a[r*K+k0+tx]:0; bs[ty][tx]=(k0+ty<K&&q<N)?b[(k0+ty)*N+q]:0; SYNC;
    for(int k=0;k<16;k++) s+=as[ty][k]*bs[k][tx]; SYNC; }
  if(r<M&&q<N) c[r*N+q]=s;
}
extern "C" __global__ void BOUNDS(256) gemm_double(const float*a,const float*b,float*c,int M,int N,int K){
  __shared__ float as[2][16][16], bs[2][16][16];
  int tx=TX%16, ty=TX/16; int r=BY*16+ty, q=BX*16+tx; float s=0; int p=0;
  as[0][ty][tx]=(r<M&&tx<K)?a[r*K+tx]:0; bs[0][ty][tx]=(ty<K&&q<N)?b[ty*N+q]:0; SYNC;
  for(int k0=0;k0<K;k0+=16){
    int kn=k0+16;
    if(kn<K){ as[p^1][ty][tx]=(r<M&&kn+tx<K)?a[r*K+kn+tx]:0; bs[p^1][ty][tx]=(kn+ty<K&&q<N)?b[(kn+ty)*N+q]:0; }
    for(int k=0;k<16;k++) s+=as[p][ty][k]*bs[p][k][tx];
    SYNC; p^=1; }
  if(r<M&&q<N) c[r*N+q]=s;
}
extern "C" __global__ void BOUNDS(256) scan(const int*x,int*y,int n){
  __shared__ int s[256]; int i=BX*256+TX; s[TX]=i<n?x[i]:0; SYNC;
  for(int d=1;d<256;d*=2){ int t= TX>=d? s[TX-d]:0; SYNC; s[TX]+=t; SYNC; }
  if(i<n) y[i]=s[TX];
}
extern "C" __global__ void BOUNDS(256) scan_double(const int*x,int*y,int n){
  __shared__ int s[2][256]; int i=BX*256+TX; int p=0; s[0][TX]=i<n?x[i]:0; SYNC;
  for(int d=1;d<256;d*=2){ s[p^1][TX]= s[p][TX]+ (TX>=d? s[p][TX-d]:0); p^=1; SYNC; }
  if(i<n) y[i]=s[p][TX];
}
extern "C" __global__ void BOUNDS(256) blelloch(const int*x,int*y,int n){
  __shared__ int s[512]; int b=BX*512; int t=TX; s[2*t]= b+2*t<n? x[b+2*t]:0; s[2*t+1]= b+2*t+1<n?x[b+2*t+1]:0;
  int off=1;
  for(int d=256;d>0;d>>=1){ SYNC; if(t<d){ int ai=off*(2*t+1)-1, bi=off*(2*t+2)-1; s[bi]+=s[ai]; } off*=2; }
  if(t==0) s[511]=0;
  for(int d=1;d<512;d*=2){ off>>=1; SYNC; if(t<d){ int ai=off*(2*t+1)-1, bi=off*(2*t+2)-1; int v=s[ai]; s[ai]=s[bi]; s[bi]+=v; } }
  SYNC; if(b+2*t<n) y[b+2*t]=s[2*t]; if(b+2*t+1<n) y[b+2*t+1]=s[2*t+1];
}
extern "C" __global__ void BOUNDS(256) warp_reduce(const float*x,float*y,int n){
  __shared__ float s[8]; int i=BX*256+TX; float a=i<n?x[i]:0;
  for(int d=16;d>0;d>>=1) a+=__nvvm_shfl_sync_down_f32(0xffffffff,a,d,31);
  if((TX&31)==0) s[TX>>5]=a; SYNC;
  if(TX<32){ a= TX<8? s[TX]:0; for(int d=4;d>0;d>>=1) a+=__nvvm_shfl_sync_down_f32(0xffffffff,a,d,31); if(TX==0) y[BX]=a; }
}
extern "C" __global__ void BOUNDS(256) softmax(const float*x,float*y,int n){
  __shared__ float s[8]; __shared__ float m; const float*r=x+(long)BX*n; float a=-1e30f;
  for(int i=TX;i<n;i+=256) a=a>r[i]?a:r[i];
  for(int d=16;d>0;d>>=1){ float b=__nvvm_shfl_sync_bfly_f32(0xffffffff,a,d,31); a=a>b?a:b; }
  if((TX&31)==0) s[TX>>5]=a; SYNC;
  if(TX==0){ float v=s[0]; for(int k=1;k<8;k++) v=v>s[k]?v:s[k]; m=v; } SYNC;
  float mm=m; SYNC; float sum=0;
  for(int i=TX;i<n;i+=256) sum+=(r[i]-mm);
  for(int d=16;d>0;d>>=1) sum+=__nvvm_shfl_sync_bfly_f32(0xffffffff,sum,d,31);
  if((TX&31)==0) s[TX>>5]=sum; SYNC;
  if(TX==0){ float v=0; for(int k=0;k<8;k++) v+=s[k]; m=v; } SYNC;
  for(int i=TX;i<n;i+=256) y[(long)BX*n+i]=(r[i]-mm)/m;
}
extern "C" __global__ void BOUNDS(256) transpose(const float*x,float*y,int w,int h){
  __shared__ float t[32][33]; int tx=TX%32, ty=TX/32;
  for(int j=0;j<32;j+=8){ int c=BX*32+tx, r=BY*32+ty+j; if(c<w&&r<h) t[ty+j][tx]=x[r*w+c]; } SYNC;
  for(int j=0;j<32;j+=8){ int c=BY*32+tx, r=BX*32+ty+j; if(c<h&&r<w) y[r*h+c]=t[tx][ty+j]; }
}
extern "C" __global__ void BOUNDS(256) stencil(const float*x,float*y,int n){
  __shared__ float t[258]; int i=BX*256+TX;
  if(i<n) t[TX+1]=x[i]; if(TX==0) t[0]= i>0?x[i-1]:0; if(TX==255) t[257]= i+1<n?x[i+1]:0; SYNC;
  if(i<n) y[i]=t[TX]+t[TX+1]+t[TX+2];
}
extern "C" __global__ void BOUNDS(256) hist(const unsigned char*x,int*y,int n){
  __shared__ int h[256]; h[TX]=0; SYNC;
  for(int i=BX*256+TX;i<n;i+=256*GX) __nvvm_atom_add_gen_i((int*)&h[x[i]],1);
  SYNC; __nvvm_atom_add_gen_i(&y[TX],h[TX]);
}
extern "C" __global__ void BOUNDS(128) bitonic(int*x){
  __shared__ int s[128]; int t=TX; s[t]=x[BX*128+t]; SYNC;
  for(int k=2;k<=128;k*=2) for(int j=k/2;j>0;j/=2){ int o=t^j; if(o>t){ int a=s[t],b=s[o]; if((a>b)==((t&k)==0)){ s[t]=b; s[o]=a; } } SYNC; }
  x[BX*128+t]=s[t];
}
extern "C" __global__ void BOUNDS(128) nbody(const float*x,float*f,int n){
  __shared__ float s[128]; int i=BX*128+TX; float xi= i<n?x[i]:0, a=0;
  for(int b=0;b<n;b+=128){ s[TX]= b+TX<n?x[b+TX]:0; SYNC; for(int j=0;j<128;j++) a+=xi-s[j]; SYNC; }
  if(i<n) f[i]=a;
}
extern "C" __global__ void BOUNDS(256) compact(const int*x,int*y,int*cnt,int n){
  __shared__ int base; __shared__ int c; if(TX==0) c=0; SYNC;
  int i=BX*256+TX; int keep= i<n && x[i]>0; int pos=0; if(keep) pos=__nvvm_atom_add_gen_i(&c,1); SYNC;
  if(TX==0) base=__nvvm_atom_add_gen_i(cnt,c); SYNC;
  if(keep) y[base+pos]=x[i];
}
