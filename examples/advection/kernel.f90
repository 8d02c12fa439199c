! The kernels of the advection example: du/dt = -du/dx on a rank's part of the grid, and the work
! arrays that they need.
!
! u(i, j, k) has `left` columns of the neighbour (or of the inflow) before i = 1 and `right` ones
! behind i = nx. Loops are divided among threads by planes, k: whoever touches a plane of the work
! arrays first uses it later.
module advection_kernel
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  implicit none
  private

  integer, parameter :: left = 3, right = 2
  real(c_double), allocatable :: rate(:, :, :), increment(:, :, :)

contains

  subroutine create_workspace(nx, ny, nz) bind(c, name='advection_create_workspace')
    integer(c_int), value :: nx, ny, nz
    integer :: k

    allocate (rate(nx, ny, nz), increment(nx, ny, nz))
    !$omp parallel do schedule(static)
    do k = 1, nz
      rate(:, :, k) = 0
      increment(:, :, k) = 0
    end do
  end subroutine create_workspace

  subroutine destroy_workspace() bind(c, name='advection_destroy_workspace')
    deallocate (rate, increment)
  end subroutine destroy_workspace

  ! rate = -du/dx, of fifth order, with one point more on the side that the wind comes from.
  subroutine differentiate(u, nx, ny, nz, spacing) bind(c, name='advection_differentiate')
    integer(c_int), value :: nx, ny, nz
    real(c_double), intent(in) :: u(1 - left:nx + right, ny, nz)
    real(c_double), value :: spacing
    real(c_double) :: scale
    integer :: i, j, k

    scale = -1 / (60 * spacing)
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          rate(i, j, k) = scale * (-2 * u(i - 3, j, k) + 15 * u(i - 2, j, k) &
                                   - 60 * u(i - 1, j, k) + 20 * u(i, j, k) &
                                   + 30 * u(i + 1, j, k) - 3 * u(i + 2, j, k))
        end do
      end do
    end do
  end subroutine differentiate

  ! A stage of a Runge-Kutta method with two arrays (Williamson 1980).
  subroutine advance(u, nx, ny, nz, keep, weight, step) bind(c, name='advection_advance')
    integer(c_int), value :: nx, ny, nz
    real(c_double), intent(inout) :: u(1 - left:nx + right, ny, nz)
    real(c_double), value :: keep, weight, step
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          increment(i, j, k) = keep * increment(i, j, k) + step * rate(i, j, k)
          u(i, j, k) = u(i, j, k) + weight * increment(i, j, k)
        end do
      end do
    end do
  end subroutine advance

end module advection_kernel
